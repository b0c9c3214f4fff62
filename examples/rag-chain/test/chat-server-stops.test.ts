import { request } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import type { DecoderStats } from '../src/decoder.ts'
import { ask, question, startChatServer, statsOf } from './chat-client.ts'

describe.each([
  ['with deadlines', true],
  ['without deadlines', false],
])('a client that leaves a server %s', (_, budgeted) => {
  test.each([
    ['a streamed', true],
    ['a whole', false],
  ])('frees the slot of %s answer', async (__, stream) => {
    const url = await startChatServer({ slots: 1, msPerToken: 1000, budgeted })
    await leaveOnce(url, { ...question, stream }, (stats) => stats.decoding === 1)
    await vi.waitFor(
      async () => expect(await statsOf(url)).toMatchObject({ decoding: 0, requests: { done: 0, cut: 1 } }),
      5000,
    )
  })

  test('leaves the line, so that no slot is ever given to it', async () => {
    const url = await startChatServer({ slots: 1, msPerToken: 1000, budgeted })
    const first = new AbortController()
    const decoding = ask(url, question, { signal: first.signal }).catch(() => {})
    await vi.waitFor(async () => expect((await statsOf(url)).decoding).toBe(1), 5000)
    await leaveOnce(url, question, (stats) => stats.waiting === 1)
    await vi.waitFor(
      async () =>
        expect(await statsOf(url)).toMatchObject({ decoding: 1, waiting: 0, requests: { unstarted: 1 } }),
      5000,
    )
    first.abort()
    await decoding
  })
})

/** Asks, and closes the connection as soon as the server's stats are as wanted. */
async function leaveOnce(
  url: string,
  body: object,
  reached: (stats: DecoderStats) => boolean,
): Promise<void> {
  const outgoing = request(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  outgoing.on('error', () => {})
  outgoing.end(JSON.stringify(body))
  await vi.waitFor(async () => expect(reached(await statsOf(url))).toBe(true), 5000)
  outgoing.destroy()
}

describe('a deadline', () => {
  test('ends a decode in the middle, with a 504', async () => {
    const url = await startChatServer({ slots: 1, msPerToken: 200, budgeted: true })
    const response = await ask(url, question, { headers: { 'x-request-timeout-ms': '500' } })
    expect(response.status).toBe(504)
    expect(await response.json()).toMatchObject({ error: { type: 'timeout', code: 'deadline_exceeded' } })
    await vi.waitFor(
      async () => expect(await statsOf(url)).toMatchObject({ decoding: 0, requests: { cut: 1 } }),
      5000,
    )
  })

  test('never lets a stream that it cuts look complete', async () => {
    const url = await startChatServer({ slots: 1, msPerToken: 100, budgeted: true })
    const response = await ask(
      url,
      { ...question, stream: true },
      { headers: { 'x-request-timeout-ms': '500' } },
    )
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toContain('chat.completion.chunk')
    expect(text).toContain('event: error\n')
    expect(text).not.toContain('[DONE]')
  })

  test('with less left than the floor is refused without decoding anything', async () => {
    const url = await startChatServer({ slots: 1, msPerToken: 1, budgeted: true, floor: 5000 })
    const response = await ask(url, question, { headers: { 'x-request-timeout-ms': '4000' } })
    expect(response.status).toBe(504)
    expect(response.headers.get('x-deadline-outcome')).toBe('short_circuited')
    expect(await response.json()).toMatchObject({ error: { type: 'timeout', code: 'short_circuited' } })
    expect(await statsOf(url)).toMatchObject({ tokens: 0, decoding: 0, requests: { unstarted: 1 } })
  })
})
