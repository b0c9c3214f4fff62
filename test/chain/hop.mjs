// One hop of a chain, as its own process: `node hop.mjs '{ "framework": ..., "upstream": ..., "options": ... }'`.
// It tells its parent over IPC where it listens and what becomes of each request.
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { Readable } from 'node:stream'
import { fetch } from '@timebudget/clients/fetch'
import { detach, operation, requestFinished, systemClock, workLate } from '@timebudget/core'
import { deadline as expressDeadline } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'

const {
  framework,
  upstream,
  options = {},
  clockShift = 0,
  h2 = false,
  background,
} = JSON.parse(process.argv[2])
const clock = { ...systemClock, epoch: () => systemClock.epoch() + clockShift }
const settings = { ...options, clock }

const report = (event, details) => process.send?.({ event, ...details })
requestFinished.subscribe(({ outcome, status, goneBy }) => report('finished', { outcome, status, goneBy }))
workLate.subscribe(({ kind }) => report('late', { kind }))

/** What every framework's handler does: calls the next hop, as the caller's method and path say. */
async function work(deadline, headers, { method, path, body }) {
  report('entered', { headers, budget: deadline.budget, epoch: clock.epoch() })
  deadline.signal.addEventListener('abort', () => {
    report('aborted', { code: deadline.signal.reason.code, outcome: deadline.signal.reason.outcome })
  })
  if (background !== undefined) detach(() => setTimeout(() => callBackground(background), 30))
  return operation('next', {}, () => fetch(new URL(path, upstream), { method, body }))
}

async function callBackground(url) {
  const response = await fetch(url)
  report('background', { status: response.status })
}

const eventStream = 'text/event-stream'
const isEventStream = (response) => response.headers.get('content-type')?.startsWith(eventStream)

const hops = {
  express() {
    const app = express()
    app.use(expressDeadline(settings), express.text({ type: '*/*' }))
    app.use(async (request, response) => {
      const { method, path, body } = request
      const answer = await work(request.deadline, request.headers, {
        method,
        path,
        body: bodyOf(method, body),
      })
      response.status(answer.status).type(answer.headers.get('content-type'))
      if (isEventStream(answer))
        Readable.fromWeb(answer.body)
          .on('error', () => {})
          .pipe(response)
      else response.send(await answer.text())
    })
    return h2 ? createHttp2Server(app) : createServer(app)
  },
  koa() {
    const app = new Koa()
    app.on('error', (error) => report('logged', { message: error.message }))
    app.use(koaDeadline(settings))
    app.use(async (context) => {
      const { method, path } = context
      let body = ''
      for await (const chunk of context.req) body += chunk
      const answer = await work(context.deadline, context.headers, {
        method,
        path,
        body: bodyOf(method, body),
      })
      context.status = answer.status
      context.type = answer.headers.get('content-type')
      context.body = isEventStream(answer) ? Readable.fromWeb(answer.body) : await answer.text()
    })
    return h2 ? createHttp2Server(app.callback()) : createServer(app.callback())
  },
  async fastify() {
    let server
    const app = fastify({
      serverFactory: (handler) => (server = h2 ? createHttp2Server(handler) : createServer(handler)),
    })
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    await app.register(fastifyDeadline, settings)
    app.all('/*', async (request, reply) => {
      const { method, url, body } = request
      const answer = await work(request.deadline, request.headers, {
        method,
        path: url,
        body: bodyOf(method, body),
      })
      reply.code(answer.status).type(answer.headers.get('content-type'))
      return isEventStream(answer) ? Readable.fromWeb(answer.body) : answer.text()
    })
    await app.ready()
    return server
  },
}

function bodyOf(method, body) {
  return method === 'GET' ? undefined : body
}

const server = await hops[framework]()
server.listen(0, '127.0.0.1', () =>
  report('listening', { url: `http://127.0.0.1:${server.address().port}/` }),
)
process.on('disconnect', () => process.exit(0))
process.on('uncaughtException', (error) => report('crashed', { message: error.message }))
process.on('unhandledRejection', (error) => report('crashed', { message: error?.message ?? String(error) }))
