import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deadlineOf, withDeadline } from '@timebudget/core/server'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { DeadlineQueue, type DeadlineQueueOptions } from '../src/index.ts'

/** A service that fetches each answer from the upstream through a queue. */
async function service(
  url: string,
  options: DeadlineQueueOptions,
): Promise<{ queue: DeadlineQueue; url: string }> {
  const queue = new DeadlineQueue(options)
  const server = createServer(
    withDeadline(
      async (request, response) => {
        const deadline = deadlineOf(request)
        const name = request.url ?? ''
        try {
          const answer = await queue.run(({ signal }) => fetch(`${url}${name.slice(1)}`, { signal }), {
            deadline,
            operation: 'call',
          })
          response.end(await answer.text())
        } catch (error) {
          if (response.headersSent || response.destroyed) return
          const { status = 500, headers = {} } = error as {
            status?: number
            headers?: Record<string, string>
          }
          response.writeHead(status, headers).end()
        }
      },
      { default: '60s' },
    ),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { queue, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('fifty callers who leave while they wait cost the upstream nothing, and who stays is served', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const { queue, url } = await service(upstream.url, { slots: 1, estimate: 10 })
  const holder = await queue.acquire()
  const leavers = Array.from({ length: 50 }, () => get(`${url}leaver`).on('error', () => undefined))
  const stayer = fetch(`${url}stayer`)
  await until(() => queue.waiting === 51)
  for (const leaver of leavers) leaver.destroy()
  await until(() => queue.waiting === 1)
  holder.release()
  expect((await stayer).status).toBe(200)
  expect(upstream.requests.map((request) => request.url)).toEqual(['/stayer'])
  expect(queue).toMatchObject({ running: 0, waiting: 0 })
})

test('a client that could not be answered in time gets a 503 at once that says when to come again', async () => {
  await using upstream = await slowUpstream()
  const { url } = await service(upstream.url, { slots: 1, estimate: '3s' })
  const holder = get(url, { headers: { 'x-request-timeout-ms': '60000' } }).on('error', () => undefined)
  await upstream.nextRequest()
  const began = performance.now()
  const refused = await fetch(url, { headers: { 'x-request-timeout-ms': '4000' } })
  expect(performance.now() - began).toBeLessThan(2000)
  expect(refused.status).toBe(503)
  expect(refused.headers.get('x-deadline-outcome')).toBe('shed')
  expect(refused.headers.get('retry-after')).toBe('2') // 3 s to wait and 3 s to work are 2 too many
  holder.destroy()
})

test('a client that leaves while its call runs gives its slot to the next, and the upstream hears of it', async () => {
  await using upstream = await slowUpstream()
  const { queue, url } = await service(upstream.url, { slots: 1 })
  const leaver = get(`${url}leaver`).on('error', () => undefined)
  const call = await upstream.nextRequest()
  const next = get(`${url}next`).on('error', () => undefined)
  await until(() => queue.waiting === 1)
  leaver.destroy()
  expect((await upstream.nextRequest()).url).toBe('/next')
  expect(await call.abandoned).toBe(true)
  next.destroy()
})
