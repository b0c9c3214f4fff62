// A client leaves: how long until the socket of the last hop is closed, one process a hop.
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { interleave, quantile } from '../support/rounds.mjs'
import { withWorkers } from '../support/worker.mjs'

const file = fileURLToPath(new URL('hop-process.mjs', import.meta.url))

export async function runCancellation({ node, quick }) {
  const rows = []
  for (const hops of [1, 3, 8]) {
    rows.push(...(await withWorkers((start) => runChain(hops, { start, node, quick }))))
  }
  return [{ title: 'A client leaves: until the socket of the last hop is closed', rows }]
}

async function runChain(hops, { start, node, quick }) {
  const chains = new Map()
  for (const variant of ['bare', 'timebudget']) {
    chains.set(variant, await chainOf(variant, { start, node, hops }))
  }
  const measured = await interleave([...chains.keys()], {
    rounds: quick ? 20 : 300,
    warmup: quick ? 5 : 40,
    measure: async (variant) => ({ ms: await leave(chains.get(variant)) }),
  })
  const taken = new Map([...measured].map(([variant, all]) => [variant, all.map(({ ms }) => ms)]))
  return [...taken].map(([variant, all]) => rowOf(variant, { all, floor: taken.get('bare'), hops }))
}

/** The workers, the last hop first. */
async function chainOf(variant, { start, node, hops }) {
  const workers = []
  for (let hop = 0; hop < hops; hop += 1) {
    const next = hop === 0 ? [] : [String(await workers.at(-1).ask('port'))]
    workers.push(await start(file, { node: node.path, args: [variant, ...next] }))
  }
  return workers
}

async function leave(workers) {
  const [last] = workers
  const closed = last.ask('closed')
  const arrived = last.ask('arrived')
  const socket = connect(await workers.at(-1).ask('port'), '127.0.0.1')
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  await arrived
  const leftAt = process.hrtime.bigint()
  socket.destroy()
  return Number(BigInt(await closed) - leftAt) / 1e6
}

function rowOf(variant, { all, floor, hops }) {
  const p99 = quantile(all, 0.99)
  const ofBare = p99 / quantile(floor, 0.99)
  const isTarget = hops === 8 && variant === 'timebudget'
  return {
    name: `${hops} ${hops === 1 ? 'hop' : 'hops'}, ${variant}`,
    figures: { 'p50, ms': quantile(all, 0.5), 'p99, ms': p99, 'p99, of bare': ofBare },
    targets: isTarget ? [{ of: 'p99, of bare', value: ofBare, most: 2 }] : [],
  }
}
