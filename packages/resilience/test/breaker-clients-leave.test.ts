import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { outcomeOf, requestFinished } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { breaker } from '../src/index.ts'

const clients = 50

const shapes: ReadonlyArray<(controller: AbortController) => void> = [
  (controller) => controller.abort(),
  (controller) => controller.abort('stop'),
  (controller) => controller.abort(new DOMException('The user aborted a request.', 'AbortError')),
  (controller) => controller.abort(new Error('connection reset')),
  (controller) => controller.abort({ status: 500 }),
]

test(`law 10: ${clients} calls given up in every shape of abort leave the circuit closed`, async () => {
  await using upstream = await slowUpstream()
  const search = breaker('search', { failures: 1 })
  const outcomes = await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      const controller = new AbortController()
      const call = search.run(({ signal }) => fetch(upstream.url, { signal }), { signal: controller.signal })
      const { abandoned } = await upstream.nextRequest()
      shapes[i % shapes.length]?.(controller)
      const error = await call.catch((reason: unknown) => reason)
      expect(await abandoned).toBe(true)
      return outcomeOf(error)
    }),
  )
  expect(outcomes).toEqual(Array(clients).fill('cancelled'))
  expect(search.state).toBe('closed')
})

test(`law 10: ${clients} clients that leave a server leave its circuit closed and close the upstream sockets`, async () => {
  await using upstream = await slowUpstream()
  const search = breaker('search', { failures: 1 })
  const server = createServer(
    withDeadline(async (_request, response) => {
      const answer = await search.run(({ signal }) => fetch(upstream.url, { signal }))
      response.end(await answer.text())
    }),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const outcomes: string[] = []
  const allFinished = new Promise<void>((resolve) => {
    const unsubscribe = requestFinished.subscribe(({ outcome }) => {
      if (outcomes.push(outcome) < clients) return
      unsubscribe()
      resolve()
    })
  })
  await Promise.all(
    Array.from({ length: clients }, async () => {
      const client = httpRequest({ port, host: '127.0.0.1', agent: false }).on('error', () => undefined)
      client.end()
      const { abandoned } = await upstream.nextRequest()
      // any of the clients: each of them leaves in its turn
      client.destroy()
      await abandoned
    }),
  )
  await allFinished
  expect(outcomes).toEqual(Array(clients).fill('client_closed'))
  expect(search.state).toBe('closed')
  server.close()
})
