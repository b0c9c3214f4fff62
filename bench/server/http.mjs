// What a middleware costs a hello world: CPU for each request, requests a second and the slowest hundredth.
import { fileURLToPath } from 'node:url'
import { interleave, medianOf, ratioOf } from '../support/rounds.mjs'
import { cpuOf, withWorkers } from '../support/worker.mjs'
import { bothAlone, guardsAlone, servers } from './http-servers.mjs'

const serverFile = fileURLToPath(new URL('http-process.mjs', import.meta.url))
const loadFile = fileURLToPath(new URL('../support/load-process.mjs', import.meta.url))

/** The deadline as a caller sends it; a moment far ahead, so that it need not be computed. */
const sent = { 'x-request-timeout-ms': '4000' }

export async function runHttp({ node, quick }) {
  const tables = []
  for (const framework of Object.keys(servers)) {
    tables.push(await withWorkers((start) => runFramework(framework, { start, node, quick })))
  }
  return tables
}

async function runFramework(framework, { start, node, quick }) {
  const names = Object.keys(servers[framework])
  const load = await start(loadFile)
  const running = new Map()
  for (const name of names) {
    const worker = await start(serverFile, { node: node.path, args: [framework, name] })
    running.set(name, { worker, port: await worker.ask('port') })
  }
  running.set(withHeader, running.get('timebudget'))
  names.splice(names.indexOf('timebudget') + 1, 0, withHeader)
  const requests = quick ? 1_000 : 4_000
  const measured = await interleave(names, {
    rounds: quick ? 3 : 25,
    warmup: quick ? 1 : 4,
    measure: (name) => {
      const headers = name === withHeader ? sent : {}
      return measure(running.get(name), { load, requests, headers })
    },
  })
  return {
    title: `${framework}: a hello world`,
    rows: names.map((name) => rowOf(name, measured, { framework, major: Number(node.major) })),
  }
}

async function measure({ worker, port }, { load, requests, headers }) {
  const { answer, cpu } = await cpuOf(worker, () => load.ask('run', { port, requests, headers }))
  return { cpu: cpu / requests, perSecond: answer.perSecond, p99: answer.p99 }
}

const peerNames = ['AbortSignal.timeout and any', 'connect-timeout', 'koa-timeout-v2', 'handlerTimeout']
const withHeader = 'timebudget, a deadline sent'

function rowOf(name, measured, { framework, major }) {
  const cpu = ratioOf(measured, name, { base: 'bare', figure: 'cpu' })
  const p99 = ratioOf(measured, name, { base: 'bare', figure: 'p99' })
  return {
    name,
    figures: {
      'us CPU': medianOf(measured, name, 'cpu'),
      'requests/s': medianOf(measured, name, 'perSecond'),
      'p99, ms': medianOf(measured, name, 'p99'),
      'p99, of bare': p99.median,
      'CPU, of bare': cpu.median,
      'half lie within': `${cpu.low.toFixed(2)} to ${cpu.high.toFixed(2)}`,
    },
    targets: name === withHeader ? [] : targetsOf(name, measured, { cpu, p99, framework, major }),
  }
}

function targetsOf(name, measured, { cpu, p99, framework, major }) {
  if (!name.startsWith('timebudget')) return []
  const cpuOfBare = (other) => ratioOf(measured, other, { base: 'bare', figure: 'cpu' }).median
  const peers = [...measured.keys()].filter((other) => peerNames.includes(other))
  const floor = name === 'timebudget' ? bothAlone : guardsAlone
  const beyond = { floor: { name: floor, value: cpuOfBare(floor) } }
  return [
    { of: 'CPU, of bare', value: cpu.median, most: mostCpu(name, { framework, major }), ...beyond },
    {
      of: 'CPU, of bare',
      value: cpu.median,
      most: Math.min(...peers.map(cpuOfBare)),
      why: 'cheaper than its peers',
      ...beyond,
    },
    { of: 'p99, of bare', value: p99.median, most: 1.1 },
  ]
}

function mostCpu(name, { framework, major }) {
  if (major >= 24) return framework === 'Express' ? 1.05 : 1.03
  return name === 'timebudget' ? 1.12 : 1.03
}
