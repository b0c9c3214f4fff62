// What a deadline costs a unary call of Connect or gRPC at the server: the protocol's own, and ours on top of it.
import { fileURLToPath } from 'node:url'
import { interleave, medianOf, ratioOf } from '../support/rounds.mjs'
import { cpuOf, withWorkers } from '../support/worker.mjs'

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url))
const loads = { Connect: fileOf('../support/load-process.mjs'), gRPC: fileOf('grpc-load-process.mjs') }
const names = ['bare', 'its own deadline', 'timebudget']
const timeout = 5_000

export async function runRpc({ node, quick }) {
  const tables = []
  for (const protocol of Object.keys(loads)) {
    tables.push(await withWorkers((start) => runProtocol(protocol, { start, node, quick })))
  }
  return tables
}

async function runProtocol(protocol, { start, node, quick }) {
  const load = await start(loads[protocol])
  const servers = new Map()
  for (const name of names) {
    const worker = await start(fileOf('rpc-process.mjs'), { node: node.path, args: [protocol, name] })
    servers.set(name, { worker, port: await worker.ask('port') })
  }
  const requests = quick ? 500 : 3_000
  const measured = await interleave(names, {
    rounds: quick ? 3 : 20,
    warmup: quick ? 1 : 4,
    async measure(name) {
      const { worker, port } = servers.get(name)
      const asking = { port, requests, ...askingOf(protocol, { hasDeadline: name !== 'bare' }) }
      const { answer, cpu } = await cpuOf(worker, () => load.ask('run', asking))
      return { cpu: cpu / requests, perSecond: answer.perSecond, p99: answer.p99 }
    },
  })
  return { title: `${protocol}: a unary call`, rows: names.map((name) => rowOf(name, measured)) }
}

function askingOf(protocol, { hasDeadline }) {
  if (protocol === 'gRPC') return hasDeadline ? { timeout } : {}
  const headers = { 'content-type': 'application/json', 'connect-protocol-version': '1' }
  if (hasDeadline) headers['connect-timeout-ms'] = String(timeout)
  return { method: 'POST', path: '/bench.Texts/Ask', headers, body: '{"text":"hello world"}' }
}

function rowOf(name, measured) {
  const cpu = ratioOf(measured, name, { base: 'bare', figure: 'cpu' })
  return {
    name,
    figures: {
      'us CPU': medianOf(measured, name, 'cpu'),
      'calls/s': medianOf(measured, name, 'perSecond'),
      'p99, ms': medianOf(measured, name, 'p99'),
      'p99, of bare': ratioOf(measured, name, { base: 'bare', figure: 'p99' }).median,
      'CPU, of bare': cpu.median,
      'half lie within': `${cpu.low.toFixed(2)} to ${cpu.high.toFixed(2)}`,
    },
  }
}
