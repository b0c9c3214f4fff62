import { once } from 'node:events'
import { slowUpstream } from '@timebudget/core/testing'
import { afterAll, afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { portOf } from './support/port-of.ts'

const quick = await slowUpstream({ delay: 0, body: 'three documents' })
process.env['PORT'] = '0'
const { server } = await import('../src/websocket.ts')
const url = `ws://127.0.0.1:${await portOf(server)}`
afterEach(() => {
  for (const client of server.clients) client.terminate()
})
afterAll(async () => {
  server.close()
  await quick.close()
})

async function connected(upstream: { readonly url: string }): Promise<WebSocket> {
  process.env['INDEX_URL'] = upstream.url.slice(0, -1)
  const socket = new WebSocket(url)
  await once(socket, 'open')
  return socket
}

function send(socket: WebSocket, message: unknown): void {
  socket.send(typeof message === 'string' ? message : JSON.stringify(message))
}

async function received(socket: WebSocket): Promise<unknown> {
  const [data] = await once(socket, 'message')
  return JSON.parse(String(data))
}

test('a message is answered, and what it calls is told what is left of its time', async () => {
  const socket = await connected(quick)
  send(socket, { id: 'a', question: 'tea', timeout: 2_000 })
  expect(await received(socket)).toEqual({ id: 'a', answer: 'three documents' })
  const { headers } = await quick.nextRequest()
  expect(Number(headers['x-request-timeout-ms'])).toBeLessThanOrEqual(2_000)
  expect(Number(headers['x-request-timeout-ms'])).toBeGreaterThan(1_000)
})

test('each message ends at its own deadline, with what it calls, and the connection goes on', async () => {
  await using index = await slowUpstream()
  const socket = await connected(index)
  send(socket, { id: 'long', question: 'tea', timeout: 30_000 })
  const long = await index.nextRequest()
  let longEnded = false
  void long.abandoned.then(() => (longEnded = true))
  const told = received(socket) // may come before we hear of the request
  send(socket, { id: 'short', question: 'tea', timeout: 500 })
  const short = await index.nextRequest()
  expect(await told).toEqual({ id: 'short', error: 'DEADLINE_EXCEEDED' })
  expect(await short.abandoned).toBe(true)
  expect(longEnded).toBe(false)
  socket.close()
  expect(await long.abandoned).toBe(true)
})

test('a client that closes, or vanishes, ends all that is done for its messages', async () => {
  await using index = await slowUpstream()
  for (const leave of ['close', 'terminate'] as const) {
    const socket = await connected(index)
    for (const id of ['a', 'b']) send(socket, { id, question: 'tea', timeout: 30_000 })
    const requests = [await index.nextRequest(), await index.nextRequest()]
    socket[leave]()
    expect(await Promise.all(requests.map(({ abandoned }) => abandoned))).toEqual([true, true])
  }
})

test('a message gets five seconds by default, and a minute at most', async () => {
  await using index = await slowUpstream()
  const socket = await connected(index)
  send(socket, { id: 'a', question: 'tea' })
  const { headers: byDefault } = await index.nextRequest()
  expect(Number(byDefault['x-request-timeout-ms'])).toBeLessThanOrEqual(5_000)
  send(socket, { id: 'b', question: 'tea', timeout: Number.MAX_SAFE_INTEGER })
  const { headers: atMost } = await index.nextRequest()
  expect(Number(atMost['x-request-timeout-ms'])).toBeLessThanOrEqual(60_000)
})

test.for([
  'no JSON',
  'null',
  '[]',
  { id: 'a' },
  { id: 1, question: 'tea' },
  ...[0, -1, 1.5, '100', null, {}, 1e300].map((timeout) => ({ id: 'a', question: 'tea', timeout })),
])('a message that cannot be read is refused, and hurts nobody: %j', async (message) => {
  const socket = await connected(quick)
  send(socket, message)
  expect(await received(socket)).toEqual({ error: 'BAD_MESSAGE' })
  send(socket, { id: 'a', question: 'tea' })
  expect(await received(socket)).toMatchObject({ id: 'a' })
})
