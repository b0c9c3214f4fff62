import { describe, expect, test } from 'vitest'
import { localProvider } from '@timebudget/llm/testing'
import { chat, failureOf, governed, responseOf } from './support/governed.ts'

const url = 'http://127.0.0.1/v1/chat/completions'
const unknownUrl = 'http://127.0.0.1/api/generate'
const events = 'text/event-stream'

const token = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
const stop = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'

async function answeredWith(
  response: () => Response,
  { at = url, ask = chat() }: { readonly at?: string; readonly ask?: RequestInit } = {},
): Promise<{ readonly failure: unknown; readonly call: unknown }> {
  const { fetch, nextCall } = governed({}, { fetch: async () => response() })
  const failure = await failureOf((await fetch(at, ask)).text())
  return { failure, call: await nextCall() }
}

describe('an answer by the fetch of somebody else', () => {
  test('is governed as well; of its connection nothing is known', async () => {
    const { failure, call } = await answeredWith(() => responseOf(events, [token, stop, 'data: [DONE]\n\n']))
    expect(failure).toBe('no failure')
    expect(call).toMatchObject({ outcome: 'ok', complete: true, contentChunks: 1 })
    expect(call).not.toHaveProperty('timings.connect')
  })

  test('that ends without [DONE] after the model has said that it is finished is complete', async () => {
    const { call } = await answeredWith(() => responseOf(events, [token, stop]))
    expect(call).toMatchObject({ outcome: 'ok', complete: true })
  })

  test('that ends before is interrupted', async () => {
    const { failure, call } = await answeredWith(() => responseOf(events, [token]))
    expect(failure).toMatchObject({ code: 'UPSTREAM_ERROR', message: expect.stringContaining('interrupted') })
    expect(call).toMatchObject({ outcome: 'upstream_error', complete: false, contentChunks: 1 })
  })

  test('that holds a malformed chunk is interrupted there', async () => {
    const { failure, call } = await answeredWith(() =>
      responseOf(events, [token, 'data: {"choices":[{"in\n\n', token, 'data: [DONE]\n\n']),
    )
    expect(failure).toMatchObject({ message: expect.stringContaining('a chunk is no JSON: {"choices"') })
    expect(call).toMatchObject({ outcome: 'upstream_error', complete: false, contentChunks: 1 })
  })

  test('that says nothing more than an error within a 200 is one', async () => {
    const { failure, call } = await answeredWith(
      () => responseOf('application/json', ['{"error":{"message":"busy","code":"overloaded"}}']),
      { ask: chat({ stream: false }) },
    )
    expect(failure).toMatchObject({ code: 'UPSTREAM_ERROR', message: expect.stringContaining('busy') })
    expect(call).toMatchObject({ outcome: 'upstream_error', complete: false, providerCode: 'overloaded' })
  })

  test('without a stream that is no JSON is interrupted', async () => {
    const { call } = await answeredWith(() => responseOf('application/json', ['{"choices":']), {
      ask: chat({ stream: false }),
    })
    expect(call).toMatchObject({ outcome: 'upstream_error', complete: false })
  })

  test('in a protocol that nobody knows is content, and may end anyhow', async () => {
    const pieces = ['{"response":"a"}\n', '{"response":"b"}\n']
    expect(
      (await answeredWith(() => responseOf('application/x-ndjson', pieces), { at: unknownUrl })).call,
    ).toMatchObject({
      outcome: 'ok',
      complete: true,
      contentChunks: 2,
    })
    const stream = ['data: {"response":"a"}\n\n', 'data: well\n\n']
    expect((await answeredWith(() => responseOf(events, stream), { at: unknownUrl })).call).toMatchObject({
      outcome: 'ok',
      contentChunks: 2,
    })
  })

  test('at an address that nobody knows is read by what it looks like', async () => {
    expect((await answeredWith(() => responseOf(events, [token]), { at: unknownUrl })).call).toMatchObject({
      outcome: 'upstream_error',
    })
  })

  test('without a body, or elsewhere, is complete at once', async () => {
    const { fetch, calls } = governed({}, { fetch: async () => new Response(null, { status: 204 }) })
    await fetch(url, chat())
    expect(calls).toMatchObject([{ outcome: 'ok', complete: true, status: 204 }])
    const redirected = governed({}, { fetch: async () => new Response(null, { status: 302 }) })
    await redirected.fetch(url, { ...chat(), redirect: 'manual' })
    expect(redirected.calls).toMatchObject([{ status: 302 }])
  })

  test('that the stranger fails to give is blamed on what is upstream', async () => {
    const { fetch, calls } = governed({}, { fetch: async () => Promise.reject(new Error('no luck')) })
    expect(await failureOf(fetch(url, chat()))).toMatchObject({ code: 'UPSTREAM_ERROR' })
    expect(calls).toMatchObject([{ outcome: 'upstream_error' }])
  })
})

describe('a long answer', () => {
  test('of a hundred thousand tokens comes whole', { timeout: 60_000 }, async () => {
    await using provider = await localProvider({ script: { steps: [{ tokens: 100_000 }] } })
    const { fetch, nextCall } = governed()
    const response = await fetch(`${provider.openaiUrl}/chat/completions`, chat())
    let bytes = 0
    for await (const chunk of response.body ?? []) bytes += chunk.byteLength
    expect(bytes).toBeGreaterThan(10_000_000)
    expect(await nextCall()).toMatchObject({ outcome: 'ok', complete: true, contentChunks: 100_000 })
  })

  test('of ten megabytes without a stream does too', { timeout: 60_000 }, async () => {
    await using provider = await localProvider({ script: { steps: [{ text: ['x'.repeat(10_000_000)] }] } })
    const { fetch, nextCall } = governed()
    const response = await fetch(`${provider.openaiUrl}/chat/completions`, chat({ stream: false }))
    expect((await response.text()).length).toBeGreaterThan(10_000_000)
    expect(await nextCall()).toMatchObject({ outcome: 'ok', textLength: 10_000_000 })
  })
})

test('the models of a provider may be listed through it', async () => {
  await using provider = await localProvider()
  const { fetch, nextCall } = governed()
  const response = await fetch(`${provider.openaiUrl}/models`)
  expect(await response.json()).toMatchObject({ object: 'list' })
  expect(await nextCall()).toMatchObject({ outcome: 'ok', model: undefined })
})

test('an answer that nobody reads is read no further ahead than it may', async () => {
  let given = 0
  function* endless(): Generator<string> {
    for (;;) {
      given += 1
      yield `data: {"choices":[{"delta":{"content":"${'x'.repeat(1_000)}"}}]}\n\n`
    }
  }
  const { fetch } = governed({}, { fetch: async () => responseOf(events, endless()) })
  const response = await fetch(url, chat())
  for (let turn = 0; turn < 500; turn += 1) await new Promise(setImmediate)
  expect(given).toBeLessThan(100)
  await response.body?.cancel()
})
