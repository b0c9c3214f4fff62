// One service of a chain, as its own process, that knows nothing of telemetry:
// `node --import @timebudget/otel/register traced-service.mjs '{ "framework": ..., "port": ..., "next": ..., "redis": ..., "postgres": ..., "options": ... }'`.
// It tells its parent over IPC where it listens, and of each request what its ledger says.
import { createServer } from 'node:http'
import { fetch } from '@timebudget/clients/fetch'
import { withDeadline as withPgDeadline } from '@timebudget/clients/pg'
import { withDeadline as withRedisDeadline } from '@timebudget/clients/redis'
import { operation, requestFinished, requestStarted } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { deadline as expressDeadline } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import pg from 'pg'

const { framework, port = 0, next, redis, postgres, options = {} } = JSON.parse(process.argv[2])
const report = (event, details) => process.send?.({ event, ...details })
const store = redis === undefined ? undefined : withRedisDeadline(new Redis(redis))
const database = postgres === undefined ? undefined : withPgDeadline(new pg.Pool(postgres))

requestStarted.subscribe(({ source, deadline }) => report('started', { source, budget: deadline.budget }))
requestFinished.subscribe(({ outcome, status, elapsed, deadline }) =>
  report('finished', { outcome, status, elapsed, budget: deadline.budget, entries: deadline.ledger.entries }),
)

/** What every framework's handler does. */
async function work(path) {
  if (path === '/hang' && next === undefined) return new Promise(() => {})
  if (path === '/quick') return operation('quick', {}, async () => 'done')
  if (path === '/rows') return JSON.stringify((await database.query('select 7 as seven')).rows)
  await operation(
    'prepare',
    { timeout: '1s', floor: '5ms' },
    () => new Promise((done) => setTimeout(done, 20)),
  )
  const found = await store?.get('key')
  if (next === undefined) return `leaf ${found}`
  // without a reserve every hop has until the same moment, and none answers for the one behind it
  const limits = path === '/hang' ? {} : { reserve: '100ms' }
  const answer = await operation('ask', limits, () => fetch(new URL(path, next)))
  return `${framework} > ${await answer.text()}`
}

const frameworks = {
  express() {
    const app = express()
    app.use(expressDeadline(options))
    app.use(async (request, response) => response.send(await work(request.path)))
    return createServer(app)
  },
  koa() {
    const app = new Koa()
    app.use(koaDeadline(options))
    app.use(async (context) => {
      context.body = await work(context.path)
    })
    return createServer(app.callback())
  },
  async fastify() {
    let server
    const app = fastify({ serverFactory: (handler) => (server = createServer(handler)) })
    await app.register(fastifyDeadline, options)
    app.all('/*', (request) => work(request.url))
    await app.ready()
    return server
  },
  node() {
    return createServer(
      withDeadline(async (request, response) => response.end(await work(request.url)), options),
    )
  },
}

process.on('warning', ({ name, message }) => report('warned', { message: `${name}: ${message}` }))
process.on('uncaughtException', (error) => report('crashed', { message: error.message }))
process.on('unhandledRejection', (error) => report('crashed', { message: String(error) }))
process.on('message', () => {
  globalThis.gc?.()
  report('memory', { used: process.memoryUsage().heapUsed })
})
process.on('disconnect', () => process.exit(0))
const server = await frameworks[framework]()
server.listen(port, '127.0.0.1', () =>
  report('listening', { url: `http://127.0.0.1:${server.address().port}/` }),
)
