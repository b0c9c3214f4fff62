// One service, as its own process: `node hop.mjs '{ "framework": ..., "upstream": ..., "options": ... }'`.
// With an upstream it passes on what it is asked; without one it answers as the path says.
import { createServer } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fetch } from '@timebudget/clients/fetch'
import { requestFinished, requestStarted, workLate } from '@timebudget/core'
import { deadlineOf, withDeadline } from '@timebudget/core/server'
import { deadline as expressDeadline, deadlineErrors } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'

const {
  framework = 'http',
  upstream,
  port = 0,
  host = '127.0.0.1',
  options = {},
  lameDuck = 0,
  grace = 1_000,
} = JSON.parse(process.argv[2])
const stopping = new AbortController()
const settings = { ...options, shutdownSignal: stopping.signal, shutdownGrace: grace }

const report = (event, details) => process.connected && process.send({ event, ...details })
requestStarted.subscribe(() => report('started'))
requestFinished.subscribe(({ outcome, status, elapsed }) => report('finished', { outcome, status, elapsed }))
workLate.subscribe(({ kind }) => report('late', { kind }))

async function answer(url, deadline) {
  report('entered', { path: url, budget: deadline.budget })
  deadline.signal.addEventListener('abort', () => report('aborted', { code: deadline.signal.reason.code }))
  if (upstream === undefined) return answerItself(new URL(url, 'http://self'), deadline)
  const response = await fetch(new URL(url, upstream))
  const type = response.headers.get('content-type') ?? 'text/plain'
  return { status: response.status, type, body: Readable.fromWeb(response.body) }
}

const answers = {
  '/quick': () => 'done',
  '/silent': () => new Promise(() => {}),
  '/half': () => new Readable({ read() {} }).setEncoding('utf8'),
  '/events': () => Readable.from(everyMoment()),
  '/slow': async (ms) => sleep(ms, 'done'),
  '/left': (_ms, deadline) => String(Math.round(deadline.remaining())),
  '/block'(ms) {
    const end = performance.now() + ms
    while (performance.now() < end);
    return 'done'
  },
}

async function answerItself({ pathname, searchParams }, deadline) {
  const body = await answers[pathname](Number(searchParams.get('for')), deadline)
  if (pathname === '/half') body.push('half')
  const type = pathname === '/events' ? 'text/event-stream' : 'text/plain'
  return { status: 200, type, body }
}

async function* everyMoment() {
  for (let index = 0; ; index += 1) {
    yield `data: ${index}\n\n`
    await sleep(30)
  }
}

function write(response, { body }) {
  if (typeof body === 'string') response.end(body)
  else pipeline(body, response, () => {})
}

const hosts = {
  http() {
    return createServer(
      withDeadline(async (request, response) => {
        const answered = await answer(request.url, deadlineOf(request))
        response.writeHead(answered.status, { 'content-type': answered.type })
        write(response, answered)
      }, settings),
    )
  },
  express() {
    const app = express()
    app.use(expressDeadline(settings))
    app.use(async (request, response) => {
      const answered = await answer(request.url, request.deadline)
      response.status(answered.status).type(answered.type)
      write(response, answered)
    })
    app.use(deadlineErrors())
    return createServer(app)
  },
  koa() {
    const app = new Koa()
    app.on('error', ({ code, message }) => report('logged', { code, message }))
    app.use(koaDeadline(settings))
    app.use(async (context) => {
      const { status, type, body } = await answer(context.url, context.deadline)
      context.status = status
      context.type = type
      context.body = body
    })
    return createServer(app.callback())
  },
  async fastify() {
    let server
    const app = fastify({ serverFactory: (handler) => (server = createServer(handler)) })
    await app.register(fastifyDeadline, settings)
    app.all('/*', async (request, reply) => {
      const { status, type, body } = await answer(request.url, request.deadline)
      reply.code(status).type(type)
      return body
    })
    await app.ready()
    return server
  },
}

const server = await hosts[framework]()
server.listen(port, host, () => report('listening', { port: server.address().port }))
process.once('SIGTERM', () => {
  stopping.abort()
  report('stopping')
  setTimeout(() => server.close(), lameDuck)
  // who connects and says nothing is idle to no server
  setTimeout(() => server.closeAllConnections(), grace + 500).unref()
  process.channel?.unref()
})
process.on('disconnect', () => process.exit(1))
process.on('uncaughtException', ({ stack }) => report('crashed', { stack }))
process.on('unhandledRejection', (reason) => report('crashed', { stack: String(reason?.stack ?? reason) }))
process.channel?.unref()
