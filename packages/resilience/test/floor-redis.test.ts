import { operation } from '@timebudget/core'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, onTestFinished, test, type TestContext } from 'vitest'
import { redisProgram, startRedis } from '../../../test/support/redis-server.ts'
import { type FloorStore, learnedFloor, redisStore } from '../src/index.ts'
import { teach } from './support/floors.ts'

async function storesIn(
  port: number,
): Promise<{ nodeRedis: FloorStore; ioredis: FloorStore; ttl(key: string): Promise<number> }> {
  const client = createClient({ url: `redis://127.0.0.1:${port}` })
  client.on('error', () => undefined)
  await client.connect()
  const io = new Redis({ port, host: '127.0.0.1' })
  io.on('error', () => undefined)
  onTestFinished(() => {
    client.destroy()
    io.disconnect()
  })
  return { nodeRedis: redisStore(client), ioredis: redisStore(io), ttl: async (key) => client.pTTL(key) }
}

async function redis(context: TestContext): Promise<Awaited<ReturnType<typeof startRedis>>> {
  const server = await startRedis(redisProgram(context))
  onTestFinished(() => server.stop())
  return server
}

test('values are kept for their time, and read back, with node-redis and with ioredis', async (context) => {
  const { port } = await redis(context)
  const { nodeRedis, ioredis, ttl } = await storesIn(port)
  for (const [writer, reader] of [
    [nodeRedis, ioredis],
    [ioredis, nodeRedis],
  ] as const) {
    expect(await reader.get('key')).toBeUndefined()
    await writer.set('key', 'value', 60_000)
    expect(await reader.get('key')).toBe('value')
    expect(await ttl('key')).toBeGreaterThan(30_000)
    expect(await ttl('key')).toBeLessThanOrEqual(60_000)
    await writer.set('key', '', 1)
    await expect.poll(() => ttl('key')).toBe(-2)
  }
})

test('two replicas share what they learn, one with node-redis, one with ioredis', async (context) => {
  const { port } = await redis(context)
  const { nodeRedis, ioredis, ttl } = await storesIn(port)
  const one = learnedFloor('retrieve', { store: nodeRedis })
  teach(one, 200)
  await expect.poll(() => ttl('timebudget:floor:retrieve'), { timeout: 10_000 }).toBeGreaterThan(0)
  const two = learnedFloor('retrieve', { store: ioredis })
  two.current(1000)
  await expect.poll(() => two.current(), { timeout: 10_000 }).toBeGreaterThan(190)
  expect(two.latency.samples).toBe(100)
})

test('a frozen Redis neither delays nor fails a request', async (context) => {
  const server = await redis(context)
  const { nodeRedis, ioredis } = await storesIn(server.port)
  server.freeze()
  for (const store of [nodeRedis, ioredis]) {
    const floor = learnedFloor('retrieve', {
      store,
      mode: 'enforce',
      cap: null,
      explore: 0,
      pressure: () => true,
    })
    teach(floor, 200)
    const began = performance.now()
    // long enough for it to have asked the store
    while (performance.now() - began < 1200) {
      const before = performance.now()
      const answer = operation('retrieve', { floor, timeout: 200 }, async () => 'answer')
      await expect(answer).resolves.toBe('answer')
      expect(performance.now() - before).toBeLessThan(150)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(floor.latency.samples).toBeGreaterThan(105)
  }
})

test('what is no client is refused', () => {
  expect(() => redisStore(undefined as never)).toThrow(/client/)
  expect(() => redisStore({} as never)).toThrow(/client/)
})
