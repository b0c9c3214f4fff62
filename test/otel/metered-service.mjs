// A service that records metrics, and in which everything that they tell can be provoked:
// `node metered-service.mjs '{ "sdk": "<folder with @opentelemetry in its node_modules>" }'`. It says over IPC where it listens.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fetch } from '@timebudget/clients/fetch'
import { Deadline, operation } from '@timebudget/core'
import { deadline } from '@timebudget/express'
import { CostMeter, governedFetch, ladder, model, openaiChat, rule } from '@timebudget/llm'
import { headersThenSilence, localProvider, steadyTokens, tokensThenSilence } from '@timebudget/llm/testing'
import { recordMetrics } from '@timebudget/otel'
import {
  breaker,
  DeadlineQueue,
  learnedFloor,
  retry,
  RetryBudget,
  watchLoopLag,
} from '@timebudget/resilience'
import express from 'express'
import OpenAI from 'openai'

const { sdk, options } = JSON.parse(process.argv[2])
const installed = createRequire(join(sdk, 'package.json'))
const load = (name) => import(pathToFileURL(installed.resolve(name)).href)
const { MeterProvider } = await load('@opentelemetry/sdk-metrics')
const { PrometheusExporter } = await load('@opentelemetry/exporter-prometheus')

const exporter = new PrometheusExporter({ preventServerStart: true })
const meter = new MeterProvider({ readers: [exporter] }).getMeter('timebudget')
recordMetrics(meter, options)

const app = express()
app.get('/metrics', (request, response) => exporter.getMetricsRequestHandler(request, response))
app.use(deadline({ default: '5s' }))

app.get('/quote', async (_request, response) => {
  response.send(await operation('retrieve', {}, () => pause(20, 'found')))
})
app.get('/named', async ({ query }, response) => {
  response.send(await operation(query.name, {}, () => 'done'))
})
app.get('/hangs', () => operation('generate', {}, () => new Promise(() => undefined)).catch(() => undefined))
app.get('/deaf', async (_request, response) => {
  const deaf = pause(150)
  await operation('deaf', { timeout: 20 }, () => deaf).catch(() => undefined)
  await deaf
  response.send('at last')
})
app.get('/next', async (request, response) => {
  const answer = await fetch(`http://${request.headers.host}/quote`)
  response.send(await answer.text())
})

const scripts = { quick: steadyTokens(3), silent: headersThenSilence(), stalls: tokensThenSilence(2) }
const provider = await localProvider({ script: ({ body }) => scripts[body.model] })
const ample = { connect: '30s', firstToken: '30s', idle: '30s', total: '60s' }
const client = new OpenAI({
  apiKey: 'any',
  baseURL: provider.openaiUrl,
  maxRetries: 0,
  fetch: governedFetch({
    profile: (call) =>
      ({ silent: { ...ample, firstToken: 30 }, stalls: { ...ample, idle: 30 } })[call.model] ?? ample,
    propagateTo: false,
  }),
})
const answers = ladder(
  [
    model(
      'big',
      ({ name }, { signal }) =>
        openaiChat(client, { model: name, messages: [{ role: 'user', content: 'why?' }] }, { signal }),
      { attempts: 1, breaker: null },
    ),
    rule(() => 'Please ask again later.'),
  ],
  { feature: 'search', cost: new CostMeter({ prices: { '*': { input: 1, output: 1 } } }) },
)
app.get('/ask/:name', async ({ params }, response) => response.json(await answers.run(params)))

app.post('/resilience', async (_request, response) => {
  await Promise.all([callQueue(), callBreaker(), callRetries(), callFloor()])
  await blockTheLoop()
  response.end()
})

async function callQueue() {
  const queue = new DeadlineQueue({ name: 'gpu', slots: 1, estimate: '60ms' })
  const gone = new AbortController()
  const work = () => pause(60)
  const callers = [
    queue.run(work),
    queue.run(work),
    queue.run(work, { timeout: 70 }),
    queue.run(work, { signal: gone.signal }),
  ]
  gone.abort()
  await Promise.allSettled(callers)
}

async function callBreaker() {
  const guard = breaker('payments', { failures: 1, halfOpenAfter: 20 })
  await guard.run(() => Promise.reject(new Error('down'))).catch(() => undefined)
  await pause(40)
  await guard.run(() => 'well')
}

async function callRetries() {
  const fails = () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNREFUSED' }))
  const quick = { operation: 'quote', attempts: 2, backoff: { initial: 1 } }
  await retry(fails, quick).catch(() => undefined)
  const budget = new RetryBudget({ ratio: 0, minPerSecond: 0 })
  await retry(fails, { ...quick, budget }).catch(() => undefined)
  await retry(() => pause(40), { ...quick, hedge: { after: 5 } })
}

async function callFloor() {
  const rules = { mode: 'enforce', minSamples: 5, explore: 0, cap: null, pressure: () => true }
  const floor = learnedFloor('translate', rules)
  for (let call = 0; call < 20; call += 1) floor.record({ spent: 500, outcome: 'ok' })
  await operation('translate', { floor, deadline: Deadline.after(50) }, () => 'done').catch(() => undefined)
}

async function blockTheLoop() {
  const watch = watchLoopLag({ threshold: '20ms', interval: '30ms' })
  await pause(40)
  for (const end = performance.now() + 100; performance.now() < end;);
  await pause(100)
  watch.stop()
}

function pause(milliseconds, value) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds, value))
}

const server = app.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
process.on('disconnect', () => process.exit())
