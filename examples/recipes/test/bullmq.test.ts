import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '@timebudget/clients/bullmq'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { type SlowUpstream, slowUpstream } from '@timebudget/core/testing'
import { Queue, type Worker } from 'bullmq'
import { afterAll, expect, onTestFinished, test, type TestContext, vi } from 'vitest'
import { redisServer } from '../../../test/support/redis-server.ts'
import { portOf } from './support/port-of.ts'

const fast = await slowUpstream({ delay: '50ms', body: 'The report' })
const silent = await slowUpstream()
afterAll(async () => {
  await Promise.all([fast.close(), silent.close()])
})

/** Both processes of the recipe, in this one. */
async function bench(context: TestContext, renderer: SlowUpstream) {
  const { port } = await redisServer(context)
  process.env['REDIS_PORT'] = String(port)
  process.env['PORT'] = '0'
  process.env['RENDERER_URL'] = renderer.url.slice(0, -1)
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  vi.spyOn(console, 'error').mockImplementation(() => undefined) // of Redis, which ends before they do
  const { server } = await import('../src/bullmq.ts')
  const { worker } = await import('../src/bullmq-worker.ts')
  await worker.waitUntilReady()
  const url = `http://127.0.0.1:${await portOf(server)}/2026-11`
  const ask = (budget: number, signal?: AbortSignal): Promise<Response> =>
    fetch(url, { headers: { 'x-request-timeout-ms': String(budget) }, ...(signal && { signal }) })
  const queue = new Queue('reports', { connection: { port } })
  onTestFinished(() => queue.close())
  return { ask, queue, worker }
}

async function failureIn(worker: Worker): Promise<Error> {
  return new Promise((resolve) => worker.once('failed', (_job, error) => resolve(error)))
}

test('a job, and what its worker calls, has what its request has left', async (context) => {
  const { ask } = await bench(context, fast)
  const answer = await ask(5_000)
  expect([answer.status, await answer.text()]).toEqual([200, 'The report'])
  const { url, headers } = await fast.nextRequest()
  expect(url).toBe('/2026-11')
  expect(Number(headers['x-request-timeout-ms'])).toBeLessThanOrEqual(5_000)
  expect(Number(headers['x-request-timeout-ms'])).toBeGreaterThan(1_000)
})

test('a job that runs is cut at the deadline of its request, and not tried again', async (context) => {
  const { ask, worker } = await bench(context, silent)
  const failed = failureIn(worker)
  const answer = await ask(500)
  expect([answer.status, answer.headers.get('x-deadline-outcome')]).toEqual([504, 'deadline_exceeded'])
  expect(await (await silent.nextRequest()).abandoned).toBe(true)
  expect(await failed).toMatchObject({ name: 'UnrecoverableError', cause: { code: 'DEADLINE_EXCEEDED' } })
})

test('a job whose time ran out in the queue is not begun', async (context) => {
  const { queue, worker } = await bench(context, silent)
  await worker.pause()
  using deadline = Deadline.after(100)
  await runWithDeadline(deadline, () => withDeadline(queue).add('report', { month: '2026-10' }))
  await sleep(150)
  const asking = silent.requests.length
  const failed = failureIn(worker)
  void worker.resume()
  expect(await failed).toMatchObject({ name: 'UnrecoverableError', cause: { code: 'DEADLINE_EXCEEDED' } })
  expect(silent.requests).toHaveLength(asking)
})

test('a client that leaves takes its job out of the queue', async (context) => {
  const { ask, queue, worker } = await bench(context, silent)
  await worker.pause()
  const client = new AbortController()
  const asked = ask(30_000, client.signal)
  await expect.poll(() => queue.getWaitingCount(), { timeout: 5_000 }).toBe(1)
  client.abort()
  await expect(asked).rejects.toThrow('aborted')
  await expect.poll(() => queue.getWaitingCount(), { timeout: 5_000 }).toBe(0)
  void worker.resume()
})
