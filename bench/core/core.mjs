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
  const variants = [
    ...counts.map((count) => ({ name: `${count.toLocaleString('en')} live`, kind: 'deadlines', count })),
    { name: 'objects in lists alone, 1,000', kind: 'objects', count: 1_000 },
    { name: 'objects in lists alone, 1,000,000', kind: 'objects', count: 1_000_000 },
  ]
  for (const variant of variants) variant.worker = await start()
  const measured = await interleave(
    variants.map(({ name }) => name),
    {
      rounds: quick ? 1 : 5,
      measure: (name) => {
        const { worker, kind, count } = variants.find((variant) => variant.name === name)
        return worker.ask('live', { kind, count })
      },
    },
  )
  const costOf = ({ name }) => leastOf(measured, name, 'cost')
  const [few, , , million, fewObjects, millionObjects] = variants
  const growth = costOf(million) / costOf(few)
  const bytesOf = ({ name }) => medianOf(measured, name, 'bytes')
  return {
    title: 'Live deadlines, armed, all different, nobody asked for their signals',
    rows: variants.map((variant) => ({
      name: variant.name,
      figures: {
        'bytes each': bytesOf(variant),
        'ns to settle one and arm another': costOf(variant),
        'full GC, ms': leastOf(measured, variant.name, 'gc'),
      },
      targets:
        variant === million
          ? [
              { of: 'bytes each', value: bytesOf(million), most: 160 },
              {
                of: `ns, of those at ${few.name}`,
                value: growth,
                most: 2,
                why: 'flat, caches apart',
                floor: { name: 'objects in lists alone', value: costOf(millionObjects) / costOf(fewObjects) },
              },
              { of: 'full GC, ms', value: leastOf(measured, variant.name, 'gc'), most: 300 },
            ]
          : [],
    })),
  }
}
