import { expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { redisProgram, startRedis } from '../support/redis-server.ts'
import { RawClient } from './raw-client.ts'
import { Service } from './service.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Two busy cores may be late by this much. */
const tolerance = 2_000
/** Long enough for a floor to have asked its store. */
const phase = 1_500

async function keepAsking(port: number): Promise<void> {
  const began = performance.now()
  using client = await RawClient.to({ port })
  for (let count = 1; performance.now() - began < phase; count += 1) {
    const asked = performance.now()
    client.get('/quote', { 'X-Request-Timeout-Ms': 10_000 })
    const answer = (await client.answered(count)).at(-1)
    expect(answer).toMatchObject({ status: 200, body: 'done' })
    expect(performance.now() - asked).toBeLessThan(tolerance)
  }
  using reader = await RawClient.to({ port })
  const asked = performance.now()
  reader.get('/stream', { 'X-Request-Timeout-Ms': 10_000 })
  const [stream] = await reader.answered()
  expect(stream?.body).toMatch(/one [^]*two [^]*three[^]*event: done/)
  expect(stream?.isWhole).toBe(true)
  expect(performance.now() - asked).toBeLessThan(tolerance)
}

function expectUnharmed(service: Service): void {
  expect(service.all('crashed')).toEqual([])
  expect(service.all('finished').filter(({ outcome }) => outcome !== 'ok')).toEqual([])
}

test('a Redis that freezes, dies and comes back delays and fails no request that leans on it', async (context) => {
  const program = redisProgram(context)
  const port = await freePort()
  const redis = await startRedis(program, port)
  await using service = await Service.start({ redis: port }, { script: 'leaning.mjs' })
  try {
    await keepAsking(service.port)
    redis.freeze()
    await keepAsking(service.port)
    redis.thaw()
    await keepAsking(service.port)
  } finally {
    await redis.stop()
  }
  await keepAsking(service.port)
  const again = await startRedis(program, port)
  try {
    await keepAsking(service.port)
    expectUnharmed(service)
  } finally {
    await again.stop()
  }
})

test('a service starts and works without the Redis it leans on', async () => {
  await using service = await Service.start({ redis: await freePort() }, { script: 'leaning.mjs' })
  await keepAsking(service.port)
  expectUnharmed(service)
})
