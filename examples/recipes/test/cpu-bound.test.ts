import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { operationStarted } from '@timebudget/core'
import { afterAll, expect, test } from 'vitest'
import type * as recipe from '../src/cpu-bound.ts'
import { portOf } from './support/port-of.ts'

process.env['PORT'] = '0'
const threads = new Set<Worker>()
process.on('worker', (thread: Worker) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})
// the built file: worker threads of Node 20 load no TypeScript
const built: typeof recipe = await import(new URL('../dist/cpu-bound.js', import.meta.url).href)
const { server } = built
const url = `http://127.0.0.1:${await portOf(server)}`
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

interface Asked {
  readonly below: number
  readonly budget: number
  readonly signal?: AbortSignal
}

async function count({ below, budget, signal }: Asked): Promise<Response> {
  const headers = { 'x-request-timeout-ms': String(budget) }
  return fetch(`${url}/?below=${below}`, { headers, ...(signal && { signal }) })
}

/** Settles once a thread has ended of those that there are now. */
async function threadEnded(): Promise<void> {
  await Promise.race([...threads].map((thread) => once(thread, 'exit')))
}

test('work of the processor is done beside the event loop', async () => {
  const answer = await count({ below: 100_000, budget: 15_000 })
  expect(await answer.text()).toBe('9592')
  expect(threads.size).toBe(1)
})

test('at its deadline the work ends with its thread', async () => {
  const ended = threadEnded()
  const answer = await count({ below: 1e15, budget: 500 })
  expect([answer.status, answer.headers.get('x-deadline-outcome')]).toEqual([504, 'deadline_exceeded'])
  await ended
})

test('a client that leaves ends the work, and the next one finds a thread', async () => {
  await count({ below: 10, budget: 15_000 })
  const ended = threadEnded()
  const client = new AbortController()
  const begun = new Promise<void>((resolve) => {
    const stop = operationStarted.subscribe(({ entry }) => {
      if (entry.name !== 'primes') return
      stop()
      setImmediate(resolve)
    })
  })
  const asked = count({ below: 1e15, budget: 10_000, signal: client.signal })
  await begun
  client.abort()
  await expect(asked).rejects.toThrow('aborted')
  await ended
  const next = await count({ below: 10, budget: 15_000 })
  expect(await next.text()).toBe('4')
})
