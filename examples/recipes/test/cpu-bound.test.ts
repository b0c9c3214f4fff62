import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import type * as recipe from '../src/cpu-bound.ts'
import { portOf } from './support/port-of.ts'

process.env['PORT'] = '0'
// the built file: worker threads of Node 20 load no TypeScript
const built: typeof recipe = await import(new URL('../dist/cpu-bound.js', import.meta.url).href)
const { server } = built
const url = `http://127.0.0.1:${await portOf(server)}`
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** How busy this process is with all its threads, in cores. */
async function coresInUse(): Promise<number> {
  const before = process.cpuUsage()
  await sleep(400)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 400_000
}

async function count(
  below: number,
  { budget, signal }: { budget: number; signal?: AbortSignal },
): Promise<Response> {
  const headers = { 'x-request-timeout-ms': String(budget) }
  return fetch(`${url}/?below=${below}`, { headers, ...(signal && { signal }) })
}

test('work of the processor is done beside the event loop', async () => {
  const answer = await count(100_000, { budget: 10_000 })
  expect(await answer.text()).toBe('9592')
})

test('at its deadline the work ends with its thread, however busy that is', async () => {
  const startedAt = performance.now()
  const answer = await count(1e15, { budget: 500 })
  expect([answer.status, answer.headers.get('x-deadline-outcome')]).toEqual([504, 'deadline_exceeded'])
  expect(performance.now() - startedAt).toBeLessThan(1_500)
  await expect.poll(coresInUse).toBeLessThan(0.5)
})

test('a client that leaves ends the work, and the next one finds a thread', async () => {
  const client = new AbortController()
  const asked = count(1e15, { budget: 10_000, signal: client.signal })
  await expect.poll(coresInUse).toBeGreaterThan(0.5)
  client.abort()
  await expect(asked).rejects.toThrow('aborted')
  await expect.poll(coresInUse).toBeLessThan(0.5)
  expect(await (await count(10, { budget: 10_000 })).text()).toBe('4')
})
