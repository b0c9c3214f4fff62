// What it costs to be observed: `operation()` with nobody listening against a build that publishes nothing at all, and with
// `recordMetrics` and `recordSpans` on an SDK. Every figure is CPU time, by processes that took turns. `npm run build`, then `node bench/observers.mjs`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const rounds = 7
const warmUp = 20_000
const count = 60_000
const core = dirname(fileURLToPath(import.meta.resolve('@timebudget/core')))
const otel = createRequire(new URL('../packages/otel/package.json', import.meta.url))

const variants = {
  'built without publish': { publishes: false },
  'nobody listens': {},
  recordMetrics: { records: true },
  'recordSpans, sampled out': { traces: 'AlwaysOffSampler' },
  'recordSpans, sampled, not exported': { traces: 'AlwaysOnSampler' },
}

async function measureAll() {
  const silent = withoutPublish()
  const times = Object.fromEntries(Object.keys(variants).map((name) => [name, []]))
  try {
    for (let round = 0; round < rounds; round += 1)
      for (const [name, variant] of Object.entries(variants)) {
        const dist = variant.publishes === false ? silent : core
        const child = fork(new URL(import.meta.url), [JSON.stringify({ ...variant, dist })])
        const [time] = await once(child, 'message')
        await once(child, 'exit')
        times[name].push(time)
      }
  } finally {
    rmSync(dirname(silent), { recursive: true, force: true })
  }
  const least = Math.min(...times['built without publish'])
  console.log(`an operation of nothing, ${rounds} processes each, Node ${process.versions.node}`)
  console.table(
    Object.entries(times).map(([name, each]) => ({
      name,
      'CPU us, median': median(each).toFixed(2),
      'CPU us, least': Math.min(...each).toFixed(2),
      'ratio of least': (Math.min(...each) / least).toFixed(2),
    })),
  )
}

/** The built core, in a folder of its own, with every `publish` emptied. */
function withoutPublish() {
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-bench-'))
  const copy = join(folder, 'dist')
  cpSync(core, copy, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  mkdirSync(join(folder, 'node_modules'))
  const ms = dirname(createRequire(join(core, 'index.js')).resolve('ms/package.json'))
  symlinkSync(ms, join(folder, 'node_modules/ms'), 'junction')
  const file = join(copy, 'event-channel.js')
  const source = readFileSync(file, 'utf8')
  const emptied = source.replace(/(publish\(build\) \{)/, '$1 return;')
  if (emptied === source) throw new Error('event-channel.js has no publish any more')
  writeFileSync(file, emptied)
  return copy
}

async function measure({ dist, records, traces }) {
  const { Deadline, operation } = await import(pathToFileURL(join(dist, 'index.js')).href)
  const load = (name) => import(pathToFileURL(otel.resolve(name)).href)
  if (traces !== undefined) {
    const { recordSpans } = await load('@timebudget/otel')
    const sdk = await load('@opentelemetry/sdk-trace-node')
    const ignored = { onStart() {}, onEnd() {}, async forceFlush() {}, async shutdown() {} }
    new sdk.NodeTracerProvider({ sampler: new sdk[traces](), spanProcessors: [ignored] }).register()
    recordSpans()
  }
  if (records) {
    const { recordMetrics } = await load('@timebudget/otel')
    const { MeterProvider } = await load('@opentelemetry/sdk-metrics')
    const { PrometheusExporter } = await load('@opentelemetry/exporter-prometheus')
    // without a reader an SDK keeps nothing
    const readers = [new PrometheusExporter({ preventServerStart: true })]
    recordMetrics(new MeterProvider({ readers }).getMeter('bench'))
  }
  const run = async (times) => {
    // a ledger keeps 1,024 operations: more would measure something else
    let options
    for (let call = 0; call < times; call += 1) {
      if (call % 1_000 === 0) options = { deadline: Deadline.after(60_000) }
      await operation('nothing', options, nothing)
    }
  }
  await run(warmUp)
  const before = process.cpuUsage()
  await run(count)
  const { user, system } = process.cpuUsage(before)
  process.send((user + system) / count)
  process.disconnect()
}

function nothing() {}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

const variant = process.argv[2]
if (variant === undefined) await measureAll()
else await measure(JSON.parse(variant))
