// What the pieces cost by themselves, and whether that grows with the number of deadlines.
import { fileURLToPath } from 'node:url'
import { interleave, leastOf, medianOf } from '../support/rounds.mjs'
import { withWorkers } from '../support/worker.mjs'

const file = fileURLToPath(new URL('core-process.mjs', import.meta.url))
const counts = [1_000, 10_000, 100_000, 1_000_000]

export function runCore({ node, quick }) {
  return withWorkers(async (start) => {
    const startHere = () => start(file, { node: node.path, flags: ['--expose-gc'] })
    return [await runPieces(await startHere(), { quick }), await runLive(startHere, { quick })]
  })
}

async function runPieces(worker, { quick }) {
  const names = await worker.ask('names')
  const measured = await interleave(names, {
    rounds: quick ? 3 : 15,
    warmup: 2,
    measure: async (name) => ({ ns: await worker.ask('timed', { name, count: quick ? 10_000 : 50_000 }) }),
  })
  return {
    title: 'The pieces',
    rows: names.map((name) => ({
      name,
      figures: { 'ns CPU': medianOf(measured, name, 'ns'), 'ns CPU, least': leastOf(measured, name, 'ns') },
    })),
  }
}

/** Each count in a process of its own: a heap that has once held a million is another heap. */
async function runLive(start, { quick }) {
  const names = counts.map((count) => `${count.toLocaleString('en')} live`)
  const workers = new Map()
  for (const name of names) workers.set(name, await start())
  const measured = await interleave(names, {
    rounds: quick ? 1 : 5,
    measure: (name) => workers.get(name).ask('live', { count: counts[names.indexOf(name)] }),
  })
  const [few, , , million] = names
  const growth = leastOf(measured, million, 'cost') / leastOf(measured, few, 'cost')
  return {
    title: 'Live deadlines, armed, all different, nobody asked for their signals',
    rows: names.map((name) => ({
      name,
      figures: {
        'bytes each': medianOf(measured, name, 'bytes'),
        'ns to settle one and arm another': leastOf(measured, name, 'cost'),
        'full GC, ms': leastOf(measured, name, 'gc'),
      },
      targets:
        name === million
          ? [
              { of: 'bytes each', value: medianOf(measured, name, 'bytes'), most: 160 },
              { of: `ns, of those at ${few}`, value: growth, most: 2, why: 'flat, caches apart' },
              { of: 'full GC, ms', value: leastOf(measured, name, 'gc'), most: 300 },
            ]
          : [],
    })),
  }
}
