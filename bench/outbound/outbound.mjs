// What it costs to call something: CPU of the client for each call.
import { fileURLToPath } from 'node:url'
import { interleave, leastOf, medianOf, ratioOf } from '../support/rounds.mjs'
import { withWorkers } from '../support/worker.mjs'
import { clients, leastAlone, leastByDispatcher } from './clients.mjs'

const clientFile = fileURLToPath(new URL('client-process.mjs', import.meta.url))
const upstreamFile = fileURLToPath(new URL('upstream-process.mjs', import.meta.url))

export async function runOutbound({ node, quick }) {
  const tables = []
  for (const library of Object.keys(clients)) {
    tables.push(await withWorkers((start) => runLibrary(library, { start, node, quick })))
  }
  return tables
}

async function runLibrary(library, { start, node, quick }) {
  const upstream = await start(upstreamFile)
  const port = await upstream.ask('port')
  const names = Object.keys(clients[library])
  const running = new Map()
  for (const name of names) {
    running.set(name, await start(clientFile, { node: node.path, args: [library, name] }))
  }
  const measured = await interleave(names, {
    rounds: quick ? 3 : 15,
    warmup: quick ? 1 : 3,
    measure: (name) => running.get(name).ask('run', { port, requests: quick ? 100 : 400, atOnce: 8 }),
  })
  return { title: `${library}: a call`, rows: names.map((name) => rowOf(name, { measured, library })) }
}

function rowOf(name, { measured, library }) {
  const cpu = ratioOf(measured, name, { base: 'bare', figure: 'cpu' })
  const ofBare = (other) => ratioOf(measured, other, { base: 'bare', figure: 'cpu' }).median
  const byHand = ofBare('AbortSignal.timeout')
  const least = name === 'timebudget, instrumentUndici' ? leastByDispatcher : leastAlone
  const floor = { name: least, value: ofBare(least) }
  const most = library === 'node:http' ? 1.06 : 1.1
  return {
    name,
    figures: {
      'us CPU': medianOf(measured, name, 'cpu'),
      'us CPU, least': leastOf(measured, name, 'cpu'),
      'calls/s': medianOf(measured, name, 'perSecond'),
      'CPU, of bare': cpu.median,
      'half lie within': `${cpu.low.toFixed(2)} to ${cpu.high.toFixed(2)}`,
    },
    targets: name.startsWith('timebudget')
      ? [
          { of: 'CPU, of bare', value: cpu.median, most, floor },
          { of: 'CPU, of bare', value: cpu.median, most: byHand, why: 'below AbortSignal.timeout', floor },
        ]
      : [],
  }
}
