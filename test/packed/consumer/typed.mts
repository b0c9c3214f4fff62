// Compiled only, as a user would: every subpath, and of each package what its first example uses.
import { simulate } from '@timebudget/cli'
import { attachDeadline } from '@timebudget/clients/axios'
import * as bullmq from '@timebudget/clients/bullmq'
import * as connect from '@timebudget/clients/connect'
import { fetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import * as grpc from '@timebudget/clients/grpc'
import * as ky from '@timebudget/clients/ky'
import * as nodeHttp from '@timebudget/clients/node-http'
import * as pg from '@timebudget/clients/pg'
import * as redis from '@timebudget/clients/redis'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { currentDeadline, Deadline, operation, type Outcome } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { ManualClock } from '@timebudget/core/testing'
import { encodeDeadline } from '@timebudget/core/wire'
import * as forExpress from '@timebudget/express'
import * as forFastify from '@timebudget/fastify'
import { inspector } from '@timebudget/inspector'
import * as forKoa from '@timebudget/koa'
import { type Answer, governedFetch, ladder, rule } from '@timebudget/llm'
import { localProvider } from '@timebudget/llm/testing'
import { DeadlinePropagator, startTelemetry } from '@timebudget/otel'
import '@timebudget/otel/register'
import { DeadlineQueue, learnedFloor, retry } from '@timebudget/resilience'
import { sse } from '@timebudget/sse'
import { streamChat } from '@timebudget/sse/browser'
import { redisResume } from '@timebudget/sse/redis'
import express from 'express'
import { fastify } from 'fastify'
import Koa from 'koa'

const app = express()
app.use(forExpress.deadline({ default: '5s', max: '60s' }))
app.use('/__budget', inspector())
app.get('/search', forExpress.deadline({ default: 800 }), async (request, response) => {
  const answer = await fetch('http://index.internal/search', { signal: request.deadline.signal })
  response.json(await answer.json())
})
app.get('/chat', async (_request, response) => {
  await sse(response, { heartbeat: '3s' }).pipe(async function* tokens() {
    yield 'Hello'
  })
})
app.use(forExpress.deadlineErrors())

// @ts-expect-error: a type that became `any` would take this too
app.use(forExpress.deadline({ default: true }))

const koa = new Koa()
koa.use(forKoa.deadline())
koa.use((context) => {
  context.body = { left: context.deadline.remaining() }
})

/** How Fastify is told of deadlines, once and for a route. */
export async function serve(): Promise<void> {
  const server = fastify()
  await server.register(forFastify.deadline, { default: '5s' })
  server.get('/', { config: { deadline: { default: '800ms' } } }, (request) => request.deadline.remaining())
}

/** What a request does that stands under a deadline. */
export async function work(): Promise<Answer> {
  const gpu = new DeadlineQueue({ name: 'gpu', slots: 4, estimate: '2s' })
  const floor = learnedFloor('rerank', { pressure: gpu })
  const found = await operation('retrieve', { timeout: '500ms', floor }, ({ signal }) =>
    fetch('http://index.internal/search', { signal }),
  )
  await retry(() => found.json(), { reserve: '1s' })
  const outcome: Outcome = 'ok'
  const left: number | undefined = currentDeadline()?.remaining()
  return await ladder([rule(() => `${outcome} ${left}`)]).run('question')
}

/** Everything else that has to have a type. */
export const others = [
  attachDeadline,
  bullmq,
  connect,
  deadlineHooks,
  deadlineInterceptor({ propagateTo: ['*.internal'] }),
  DeadlinePropagator,
  encodeDeadline(Deadline.after('5s')),
  governedFetch({ profile: 'chat' }),
  grpc,
  ky,
  localProvider,
  new ManualClock(),
  nodeHttp,
  pg,
  redis,
  redisResume,
  simulate,
  startTelemetry,
  streamChat,
  withDeadline((_request, response) => void response.end()),
]
