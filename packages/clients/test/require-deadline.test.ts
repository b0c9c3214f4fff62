import { once } from 'node:events'
import http from 'node:http'
import { attachDeadline as attachAxios } from '@timebudget/clients/axios'
import { withDeadline as bullmqWithDeadline } from '@timebudget/clients/bullmq'
import { deadlineInterceptor as connectInterceptor } from '@timebudget/clients/connect'
import { wrapFetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import { deadlineInterceptor as grpcInterceptor } from '@timebudget/clients/grpc'
import { attachDeadline as attachKy } from '@timebudget/clients/ky'
import { DeadlineAgent, wrapRequest } from '@timebudget/clients/node-http'
import { withDeadline as pgWithDeadline } from '@timebudget/clients/pg'
import { withDeadline as redisWithDeadline } from '@timebudget/clients/redis'
import { deadlineInterceptor, instrumentUndici } from '@timebudget/clients/undici'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import axios from 'axios'
import { Queue } from 'bullmq'
import got from 'got'
import { Redis } from 'ioredis'
import ky from 'ky'
import { createClient } from 'redis'
import * as undici from 'undici'
import { afterEach, describe, expect, test, type TestContext } from 'vitest'
import { connectServer, protocols, textOf, textsClient } from './support/connect-bench.ts'
import { grpcServer, type Handled, type Respond, TextsClient } from './support/grpc-bench.ts'
import { pgBench } from './support/pg-bench.ts'
import { redisServer } from '../../../test/support/redis-server.ts'
import { failureOf } from './support/under.ts'

const required = { requireDeadline: true } as const
const closing: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A client that requires a deadline, and what of its calls has arrived where they go. */
interface Strict {
  call(): unknown
  arrived(): unknown
}

const overHttp = (make: (url: string) => () => unknown) => async (): Promise<Strict> => {
  const upstream = await slowUpstream({ delay: 0 })
  closing.push(() => upstream.close())
  return { call: make(upstream.url), arrived: () => upstream.requests.length }
}

async function answered(request: http.ClientRequest): Promise<void> {
  const [response] = await once(request, 'response')
  await response.toArray()
}

const clients: Readonly<Record<string, (context: TestContext) => Promise<Strict>>> = {
  fetch: overHttp((url) => async () => (await wrapFetch(undefined, required)(url)).text()),
  undici: overHttp((url) => {
    const dispatcher = new undici.Agent().compose(deadlineInterceptor(required))
    closing.push(() => dispatcher.destroy())
    return async () => (await undici.request(url, { dispatcher })).body.text()
  }),
  'the instrumented global fetch': overHttp((url) => {
    closing.push(instrumentUndici(required))
    return async () => (await globalThis.fetch(url)).text()
  }),
  'node:http': overHttp((url) => async () => answered(wrapRequest(http.request, required)(url).end())),
  'an agent': overHttp(
    (url) => async () => answered(http.get(url, { agent: new DeadlineAgent({ ...required }) })),
  ),
  axios: overHttp((url) => {
    const instance = axios.create()
    attachAxios(instance, required)
    return () => instance.get(url)
  }),
  got: overHttp((url) => () => got.extend(deadlineHooks(required))(url)),
  'got.stream': overHttp((url) => () => got.extend(deadlineHooks(required)).stream(url).toArray()),
  ky: overHttp((url) => async () => attachKy(ky, required)(url).text()),

  async 'grpc-js'() {
    let arrived = 0
    const server = await grpcServer({
      ask(_: Handled, respond: Respond) {
        arrived += 1
        respond(null, 'yes')
      },
    })
    const client = new TextsClient(server.address, [grpcInterceptor(required)])
    closing.push(
      () => server[Symbol.asyncDispose](),
      () => client.close(),
    )
    return { call: () => client.ask('hi'), arrived: () => arrived }
  },
  async Connect() {
    const server = await connectServer({ ask: () => textOf('yes') })
    closing.push(() => server[Symbol.asyncDispose]())
    const [protocol] = protocols
    const transport = protocol!.transport(server.url, { interceptors: [connectInterceptor(required)] })
    return { call: () => textsClient(transport).ask('hi'), arrived: () => server.requests.length }
  },

  async 'a pool of pg'(context) {
    const pool = (await pgBench(context)).pool()
    return {
      call: () => pgWithDeadline(pool, required).query('select 1'),
      arrived: () => pool.totalCount,
    }
  },
  async 'a pool of pg, called back'(context) {
    const pool = (await pgBench(context)).pool()
    const call = () =>
      new Promise((resolve, reject) => {
        pgWithDeadline(pool, required).query('select 1', (error: unknown, result: unknown) =>
          error ? reject(error) : resolve(result),
        )
      })
    return { call, arrived: () => pool.totalCount }
  },
  async 'a connection of pg'(context) {
    const pool = (await pgBench(context)).pool()
    const call = async () => (await pgWithDeadline(pool, required).connect()).release()
    return { call, arrived: () => pool.totalCount }
  },
  async 'node-redis'(context) {
    const client = createClient({ socket: { port: (await redisServer(context)).port } })
    await client.connect()
    closing.push(() => client.destroy())
    await client.del('count')
    return {
      call: () => redisWithDeadline(client, required).incr('count'),
      arrived: async () => Number(await client.get('count')),
    }
  },
  async 'a transaction of ioredis'(context) {
    const client = new Redis({ port: (await redisServer(context)).port })
    closing.push(() => client.disconnect())
    await client.del('count')
    return {
      call: () => redisWithDeadline(client, required).multi().incr('count').exec(),
      arrived: async () => Number(await client.get('count')),
    }
  },
  async 'a queue of BullMQ'(context) {
    const queue = new Queue('strict', { connection: { port: (await redisServer(context)).port } })
    closing.push(() => queue.close())
    return { call: () => bullmqWithDeadline(queue, required).add('mail', {}), arrived: () => queue.count() }
  },
}

const refusal = { name: 'TypeError', message: 'requireDeadline: this call stands under no deadline' }

describe.each(Object.entries(clients))('where a deadline is required, %s', (_name, make) => {
  test('refuses a call without one before any I/O, and makes one that has it', async (context) => {
    const { call, arrived } = await make(context)
    expect(rootOf(await failureOf((async () => call())()))).toMatchObject(refusal)
    expect(await arrived()).toBe(0)
    using deadline = Deadline.after('20s')
    await runWithDeadline(deadline, call)
    expect(await arrived()).toBe(1)
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'ok' }])
  })
})

test('a timeout of the client is limit enough', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const answer = await wrapFetch(undefined, { ...required, timeout: '20s' })(upstream.url)
  expect(await answer.text()).toBe('done')
})

test('a processor that requires a deadline fails a job that carries none, and it is not tried again', async () => {
  let runs = 0
  const process = bullmqWithDeadline(async () => (runs += 1), required)
  const failure = await failureOf(process({ name: 'mail', opts: {} }, undefined, undefined))
  expect(failure).toMatchObject({ name: 'UnrecoverableError', cause: refusal })
  const opts = { timebudget: { deadline: Date.now() + 20_000 } }
  expect(await process({ name: 'mail', opts }, undefined, undefined)).toBe(1)
})

test('where a deadline is required, a transaction of pg may be rolled back without one', async (context) => {
  const client = await (await pgBench(context)).client()
  const db = pgWithDeadline(client, required)
  using deadline = Deadline.after('20s')
  await runWithDeadline(deadline, () => db.query('begin'))
  expect(await failureOf(db.query('select 1'))).toMatchObject(refusal)
  await db.query('rollback')
  expect(await failureOf(db.query('commit'))).toMatchObject(refusal)
})

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error
}
