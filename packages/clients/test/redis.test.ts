import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, test, type TestContext } from 'vitest'
import { workLate } from '@timebudget/core'
import { type RedisOptions, withDeadline } from '@timebudget/clients/redis'
import { freePort } from '../../../test/support/free-port.ts'
import { redisProgram, redisServer, startRedis } from '../../../test/support/redis-server.ts'
import { eventually, failureOf, under } from './support/under.ts'

/** What both clients do, in the words of one. */
interface Store {
  get(key: string): Promise<unknown>
  set(key: string, value: string): Promise<unknown>
  blockingPop(key: string, seconds: number): Promise<unknown>
  blockingRead(key: string, milliseconds: number): Promise<unknown>
  transaction(key: string): Promise<unknown>
  several(key: string): Promise<unknown>
  /** A command that the server refuses. */
  broken(): Promise<unknown>
  /** The client's own, ungoverned. */
  plain: { get(key: string): Promise<unknown> }
}

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function nodeRedis(port: number, options?: RedisOptions): Promise<Store> {
  const client = createClient({ socket: { port, host: '127.0.0.1', reconnectStrategy: 50 } })
  client.on('error', () => {})
  closing.push(() => client.destroy())
  const connected = client.connect()
  connected.catch(() => {})
  await Promise.race([connected, new Promise((resolve) => client.once('error', resolve))])
  const db = withDeadline(client, options)
  return {
    get: (key) => db.get(key),
    set: (key, value) => db.set(key, value),
    blockingPop: (key, seconds) => db.blPop(key, seconds),
    blockingRead: (key, milliseconds) => db.xRead({ key, id: '$' }, { BLOCK: milliseconds }),
    transaction: (key) => db.multi().set(key, '1').incr(key).exec(),
    several: (key) => db.multi().set(key, '1').incr(key).execAsPipeline(),
    broken: () => db.sendCommand(['NOSUCH']),
    plain: client,
  }
}

async function ioredis(port: number, options?: RedisOptions): Promise<Store> {
  const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null, retryStrategy: () => 50 })
  client.on('error', () => {})
  closing.push(() => client.disconnect())
  await new Promise((resolve) => client.once('ready', resolve).once('error', resolve))
  const db = withDeadline(client, options)
  return {
    get: (key) => db.get(key),
    set: (key, value) => db.set(key, value),
    blockingPop: (key, seconds) => db.blpop(key, seconds),
    blockingRead: (key, milliseconds) => db.xread('BLOCK', milliseconds, 'STREAMS', key, '$'),
    transaction: (key) => db.multi().set(key, '1').incr(key).exec(),
    several: (key) => db.pipeline().set(key, '1').incr(key).exec(),
    broken: () => db.call('NOSUCH'),
    plain: client,
  }
}

const clients = { nodeRedis, ioredis }

describe.each(Object.entries(clients))('a command of %s under a deadline', (_name, open) => {
  const store = async (context: TestContext, options?: RedisOptions): Promise<Store> =>
    open((await redisServer(context)).port, options)

  test('answers as ever while there is time, and stands in the ledger', async (context) => {
    const db = await store(context, { operation: ({ command }) => `redis ${command}` })
    await under(5_000, async (deadline) => {
      await db.set('greeting', 'hello')
      expect(await db.get('greeting')).toBe('hello')
      expect(deadline.ledger.entries).toMatchObject([
        { name: 'redis set', outcome: 'ok' },
        { name: 'redis get', outcome: 'ok' },
      ])
    })
    expect(await db.get('greeting')).toBe('hello')
  })

  test('runs transactions and pipelines, each as one operation', async (context) => {
    const db = await store(context)
    await under(5_000, async (deadline) => {
      expect(JSON.stringify(await db.transaction('counted'))).toContain('2')
      expect(JSON.stringify(await db.several('counted'))).toContain('2')
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'ok' }, { outcome: 'ok' }])
      expect(deadline.ledger.entries).toHaveLength(2)
    })
  })

  test('costs a request its budget and no more when the server is frozen, and works again afterwards', async (context) => {
    const server = await redisServer(context)
    const db = await store(context)
    const late: unknown[] = []
    const unsubscribe = workLate.subscribe((event) => late.push(event))
    server.freeze()
    try {
      for (const call of [
        () => db.get('greeting'),
        () => db.transaction('counted'),
        () => db.several('counted'),
      ]) {
        await under(200, async (deadline) => {
          expect(await failureOf(call())).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
          expect(deadline.elapsed()).toBeLessThan(400)
          expect(deadline.ledger.entries).toMatchObject([{ outcome: 'deadline_exceeded' }])
        })
      }
    } finally {
      server.thaw()
    }
    await under(5_000, async () => {
      await db.set('greeting', 'again')
      expect(await db.get('greeting')).toBe('again')
    })
    // the three late answers were swallowed, and counted
    await eventually(() => late.length === 3)
    unsubscribe()
  })

  test('that blocks does so no longer than there is time, so that the connection is free again', async (context) => {
    const db = await store(context)
    for (const call of [
      () => db.blockingPop('nothing', 20),
      () => db.blockingPop('nothing', 0),
      () => db.blockingRead('empty', 0),
    ]) {
      await under(200, async () => {
        expect([null, 'DEADLINE_EXCEEDED']).toContain(
          await call().catch((error: { code: string }) => error.code),
        )
      })
      const started = Date.now()
      await db.plain.get('greeting')
      expect(Date.now() - started).toBeLessThan(2_000)
    }
    await under(30_000, async (deadline) => {
      expect(await db.blockingPop('nothing', 0.1)).toBeNull()
      expect(deadline.elapsed()).toBeLessThan(5_000)
    })
  })

  test('within a transaction is not sent with less left than the floor', async (context) => {
    const db = await store(context, { floor: '1s' })
    await under(5_000, () => db.set('floor', 'before'))
    await under(500, async (deadline) => {
      expect(await failureOf(db.transaction('floor'))).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'short_circuited' }])
    })
    expect(await db.plain.get('floor')).toBe('before')
  })

  test('fails with the own error of the client, and the ledger says upstream_error', async (context) => {
    const db = await store(context)
    await under(5_000, async (deadline) => {
      expect(await failureOf(db.broken())).toMatchObject({
        message: expect.stringContaining('unknown command'),
      })
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'upstream_error' }])
    })
  })

  test('fails by its deadline while there is no server, and the connection that comes works', async (context) => {
    const program = redisProgram(context)
    const port = await freePort()
    const db = await open(port)
    await under(200, async (deadline) => {
      expect(await failureOf(db.set('queued', 'late'))).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(deadline.elapsed()).toBeLessThan(500)
    })
    const server = await startRedis(program, port)
    try {
      await under(10_000, async () => {
        await db.set('greeting', 'hello')
        expect(await db.get('greeting')).toBe('hello')
        // node-redis withdraws what has not been sent, ioredis cannot
        if (open === nodeRedis) expect(await db.get('queued')).toBeNull()
      })
    } finally {
      await server.stop()
    }
  })
})

test('ioredis takes callbacks, a Buffer variant, scripts and autopipelining', async (context) => {
  const { port } = await redisServer(context)
  const client = new Redis({ port, host: '127.0.0.1', enableAutoPipelining: true })
  closing.push(() => client.disconnect())
  client.defineCommand('echoed', { numberOfKeys: 1, lua: 'return ARGV[1]' })
  const db = withDeadline(client)
  await under(5_000, async (deadline) => {
    const answer = await new Promise((resolve) =>
      db.set('told', 'yes', (error, result) => resolve([error, result])),
    )
    expect(answer).toEqual([null, 'OK'])
    expect(await db.getBuffer('told')).toEqual(Buffer.from('yes'))
    expect(await Reflect.get(db, 'echoed')('told', 'back')).toBe('back')
    const results = await new Promise((resolve) =>
      db
        .pipeline()
        .get('told')
        .exec((error, all) => resolve([error, all])),
    )
    expect(results).toEqual([null, [[null, 'yes']]])
    expect(deadline.ledger.entries.every(({ outcome }) => outcome === 'ok')).toBe(true)
    expect(deadline.ledger.entries).toHaveLength(4)
  })
})

test('node-redis keeps its options, iterators and subscriptions', async (context) => {
  const { port } = await redisServer(context)
  const client = createClient({ socket: { port, host: '127.0.0.1' } })
  client.on('error', () => {})
  closing.push(() => client.destroy())
  const db = withDeadline(client)
  await under(5_000, async (deadline) => {
    await db.connect()
    await db.set('told', 'yes')
    expect(await db.withTypeMapping({ 36: Buffer }).get('told')).toEqual(Buffer.from('yes'))
    const keys: string[] = []
    for await (const page of db.scanIterator({ MATCH: 'told' })) keys.push(...page)
    expect(keys).toEqual(['told'])
    expect(db.isReady).toBe(true)
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok'])
  })
})

test('what is no client of Redis, or an option that cannot be read, is named', () => {
  expect(() => withDeadline({})).toThrow(/client/)
})
