// One hop of a soaked chain, as its own process: `node --expose-gc hop.mjs '{ "framework": ..., "next": ... }'`.
// It does what each request's plan says, tells its parent how all it did ended, and at last shows that it holds nothing.
import { setTimeout as sleep } from 'node:timers/promises'
import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import v8 from 'node:v8'
import { Deadline, detach, operation } from '@timebudget/core'
import { retry } from '@timebudget/resilience'
import { Accounts } from './accounts.mjs'
import { calls, closeConnections } from './calls.mjs'
import { frameworks } from './frameworks.mjs'
import { viewOfAnswer, viewOfFailure } from './views.mjs'

const { framework, next, port, options } = JSON.parse(process.argv[2])
const tell = (event, details) => process.connected && process.send({ event, ...details })
const wrong = (what) => tell('wrong', { what })
process.on('uncaughtException', (error) => wrong(`uncaught: ${error.stack}`))
process.on('unhandledRejection', (reason) => wrong(`unhandled: ${reason?.stack ?? reason}`))
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') wrong(`${name}: ${message}`)
})

const accounts = new Accounts({ tell, wrong })
const stopping = new AbortController()
const detached = new Set()

async function handle(request, response, deadline) {
  const { id, steps, upstream } = JSON.parse(request.headers['x-soak-plan'])
  const [step, ...later] = steps
  const scope = options.ambient ? {} : { deadline }
  if (step.forgets) forget()
  if (step.thinks > 0) await operation('think', scope, ({ signal }) => think(step, signal))
  const plan = { id, steps: later, upstream }
  const answers = []
  for (let call = 1; call <= step.calls; call += 1) {
    answers.push(await callNext({ ...plan, id: `${id}.${call}` }, step, deadline))
  }
  return answer(answers.at(-1), step, { response, deadline })
}

const think = (step, signal) => sleep(step.thinks, undefined, step.isDeaf ? {} : { signal })

/** Work that outlives its request, which must not hold the request's deadline. */
function forget() {
  detach(() => {
    const work = sleep(150).finally(() => detached.delete(work))
    detached.add(work)
  })
}

function callNext(plan, { client, timeout, floor, reserve, attempts, handsSignalOn }, deadline) {
  const settings = { timeout, floor, reserve, deadline }
  const url = plan.steps.length > 0 ? next : new URL(`${plan.upstream.kind}/${plan.upstream.for}`, next).href
  let attempt = 0
  const once = ({ signal }) => {
    attempt += 1
    return call(client, url, {
      plan: { ...plan, id: `${plan.id}.${attempt}` },
      // without it a client knows of its deadline by the async context alone
      signal: handsSignalOn || !options.ambient ? signal : undefined,
    })
  }
  if (attempts === 1) return operation('call', settings, once)
  return retry(once, {
    attempts,
    deadline,
    backoff: { initial: 10, max: 40 },
    budget: null,
    operation: 'calls',
  })
}

/** One call on the wire, of which the parent hears how it ended here. */
async function call(client, url, { plan, signal }) {
  const headers = { 'x-soak-id': plan.id, 'x-soak-plan': JSON.stringify(plan) }
  const isOurs = plan.steps.length > 0
  try {
    const answered = await calls[client](url, headers, signal)
    if (isOurs) tell('called', { id: plan.id, at: Date.now(), client, ...viewOfAnswer(answered) })
    return answered
  } catch (error) {
    if (isOurs) tell('called', { id: plan.id, at: Date.now(), client, ...viewOfFailure(error) })
    throw error
  }
}

async function answer(passed, step, { response, deadline }) {
  switch (step.answer) {
    case 'stream':
      return { status: 200, type: 'text/event-stream', body: Readable.from(events(step)) }
    case 'late':
      await sleep(deadline.remaining() + step.lateBy)
      return { status: 200, type: 'text/plain', body: 'late' }
    case 'fail':
      throw Object.assign(new Error('failed as planned'), { expose: true, status: 500 })
    case 'hang':
      return new Promise(() => {})
    case 'halt':
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half')
      response.destroy()
      return undefined
    default: {
      const isOurs = passed.status < 300 || passed.status >= 500
      return { status: isOurs ? passed.status : 502, type: 'text/plain', body: passed.text.slice(0, 100) }
    }
  }
}

async function* events(step) {
  for (let event = 0; event < step.events; event += 1) {
    yield `data: ${event}\n\n`
    await sleep(step.gap)
  }
  yield 'event: done\ndata: {}\n\n'
}

/** Memory after a collection, and how many deadlines are still reachable. */
async function measure() {
  // what was collected has finalizers, which let go of more
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc()
    await sleep(50)
  }
  return { heap: process.memoryUsage().heapUsed, deadlines: v8.queryObjects(Deadline, { format: 'count' }) }
}

const server = await frameworks[framework](handle, { ...options, shutdownSignal: stopping.signal })
server.keepAliveTimeout = 60_000
const connections = new Set()
server.on('connection', (socket) => {
  connections.add(socket)
  socket.on('close', () => connections.delete(socket))
})
server.listen(port, '127.0.0.1', () => tell('listening'))

const orders = {
  open: () => tell('open', { count: accounts.open + detached.size }),
  async measure() {
    const isConnection = (kind) => kind === 'TCPSocketWrap'
    const connections = process.getActiveResourcesInfo().filter(isConnection).length
    tell('measured', { ...(await measure()), connections, listeners: mostListeners() })
  },
  async finish() {
    server.close()
    server.closeAllConnections()
    await closeConnections()
    tell('census', {
      ...(await measure()),
      accounts,
      resources: process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap'),
      listeners: mostListeners(),
    })
    // with nothing left to wait for the process ends by itself
    process.off('disconnect', abandon)
    process.disconnect()
  },
}
const abandon = () => process.exit(1)
process.on('disconnect', abandon)
process.on('message', (order) => void orders[order]())

/** The most listeners that a kept connection, or the signal of the shutdown, has gathered. */
function mostListeners() {
  const ofSocket = (socket) =>
    socket.eventNames().reduce((most, name) => Math.max(most, socket.listenerCount(name)), 0)
  return Math.max(getEventListeners(stopping.signal, 'abort').length, ...[...connections].map(ofSocket))
}
