import { Deadline, operationFinished, runWithDeadline } from '@timebudget/core'
import { llmCallFinished, type LlmCall, withCallSettings } from '@timebudget/llm'
import {
  blackHole,
  errorAnswer,
  keepAliveForEver,
  localProvider,
  neverAnswers,
  steadyTokens,
  tokensThenSilence,
} from '@timebudget/llm/testing'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ample, chat, failureOf, governed } from './support/governed.ts'

const chatUrl = '/chat/completions'

describe('a call to a model', () => {
  test('under no deadline is governed by its profile alone, and told of as an operation all the same', async () => {
    await using provider = await localProvider({ script: neverAnswers() })
    const finished: string[] = []
    onTestFinished(
      operationFinished.subscribe(({ entry }) => finished.push(`${entry.path}: ${entry.outcome}`)),
    )
    const { fetch, calls } = governed({ firstToken: 100 })
    const failure = await failureOf(fetch(provider.openaiUrl + chatUrl, chat()))
    expect(failure).toMatchObject({ code: 'FIRST_TOKEN_TIMEOUT', operation: 'generate', budget: 100 })
    expect(failure).toHaveProperty('elapsed', expect.any(Number))
    expect(calls).toHaveLength(1)
    expect(finished).toEqual(['generate: first_token_timeout'])
  })

  test('says what was left of the deadline when a limit passed', async () => {
    await using provider = await localProvider({ script: neverAnswers() })
    const { fetch, calls } = governed({ firstToken: 100 })
    const deadline = Deadline.after(30_000)
    await runWithDeadline(deadline, () => failureOf(fetch(provider.openaiUrl + chatUrl, chat())))
    const [call] = calls
    expect(call?.error).toHaveProperty('remaining', expect.closeTo(29_000, -3.5))
  })

  test('that fails a moment before its deadline has failed for want of time', async () => {
    await using provider = await localProvider({ script: neverAnswers() })
    const limited = governed({ firstToken: 178 })
    const ask = (fetch: typeof limited.fetch): Promise<unknown> =>
      runWithDeadline(Deadline.after(200), () => failureOf(fetch(provider.openaiUrl + chatUrl, chat())))
    expect(await ask(limited.fetch)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(limited.calls).toMatchObject([{ outcome: 'deadline_exceeded' }])
    const resetting = (): Promise<never> =>
      new Promise((_resolve, reject) => setTimeout(() => reject(new Error('socket hang up')), 178))
    const broken = governed({}, { fetch: resetting })
    expect(await ask(broken.fetch)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(broken.calls).toMatchObject([{ outcome: 'deadline_exceeded' }])
  })

  test('carries the deadline to the provider', async () => {
    await using provider = await localProvider()
    const { fetch } = governed()
    const call = runWithDeadline(Deadline.after(30_000), () => fetch(provider.openaiUrl + chatUrl, chat()))
    await (await call).text()
    const [request] = provider.requests
    expect(Number(request?.headers['x-request-timeout-ms'])).toBeGreaterThan(20_000)
  })

  test('is not begun with less than its floor left, nor under a deadline that has passed', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed({}, { floor: '1s' })
    const url = provider.openaiUrl + chatUrl
    await runWithDeadline(Deadline.after(500), () => failureOf(fetch(url, chat())))
    await runWithDeadline(Deadline.after(0), () => failureOf(fetch(url, chat())))
    expect(calls.map(({ outcome }) => outcome)).toEqual(['short_circuited', 'deadline_exceeded'])
    expect(calls[0]).toMatchObject({ complete: false, usage: { estimated: false }, status: undefined })
    expect(provider.requests).toHaveLength(0)
  })

  test('whose signal has aborted before is cancelled, and not made', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed()
    const signal = AbortSignal.abort('the user thought better of it')
    expect(await failureOf(fetch(provider.openaiUrl + chatUrl, { ...chat(), signal }))).toBe(
      'the user thought better of it',
    )
    expect(calls).toMatchObject([{ outcome: 'cancelled', complete: false }])
    expect(provider.requests).toHaveLength(0)
  })

  test('is recorded once, on the channel and by the callback, and a callback that throws hurts nobody', async () => {
    await using provider = await localProvider()
    const published: LlmCall[] = []
    onTestFinished(llmCallFinished.subscribe((call) => published.push(call)))
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const { fetch, calls } = governed({}, { feature: 'search', tenant: 'acme', task: 'title' })
    const response = await withCallSettings(
      {
        tenant: 'other',
        onCall() {
          throw new Error('a bug in a callback')
        },
      },
      () => fetch(provider.openaiUrl + chatUrl, chat({ stream_options: { include_usage: true } })),
    )
    await response.text()
    expect(published).toEqual(calls)
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({
      operation: 'generate',
      provider: '127.0.0.1',
      model: 'test-model',
      url: provider.openaiUrl + chatUrl,
      task: 'title',
      feature: 'search',
      tenant: 'other',
      attempt: 1,
      outcome: 'ok',
      complete: true,
      status: 200,
      contentChunks: 5,
      textLength: 'Good to hear from you.'.length,
      sdkRetry: false,
    })
    expect(calls[0]?.usage).toMatchObject({ outputTokens: 5, cachedTokens: 0, estimated: false })
    const {
      connect = -1,
      headers = -1,
      firstChunk = -1,
      firstToken = -1,
      total = -1,
    } = calls[0]?.timings ?? {}
    expect(connect).toBeGreaterThan(0)
    const inOrder = [connect, headers, firstChunk, firstToken, total]
    expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b))
    expect((await warned).message).toContain('a bug in a callback')
  })

  test('tells the first bytes of an answer from its first content', async () => {
    await using provider = await localProvider({
      script: { steps: [{ keepAlive: 1 }, { wait: 300 }, { text: 'here' }] },
    })
    const { fetch, calls } = governed()
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    const { firstChunk = Infinity, firstToken = 0 } = calls[0]?.timings ?? {}
    expect(firstToken - firstChunk).toBeGreaterThan(100)
  })

  test('chooses its profile anew each time: by the code around it, by name, by what was changed meanwhile', async () => {
    await using provider = await localProvider({ script: neverAnswers() })
    const own = { quick: { ...ample, firstToken: 100 } }
    const { fetch, calls } = governed({}, { profiles: own })
    const ask = (): Promise<unknown> => failureOf(fetch(provider.openaiUrl + chatUrl, chat()))
    await withCallSettings({ profile: 'quick' }, ask)
    own.quick = { ...ample, firstToken: 60 }
    await withCallSettings({ profile: ({ model }) => (model === 'test-model' ? 'quick' : 'chat') }, ask)
    expect(calls.map(({ error }) => error)).toMatchObject([{ budget: 100 }, { budget: 60 }])
  })

  test('sends the idempotency key of the code around it, unless it has one', async () => {
    await using provider = await localProvider()
    const { fetch } = governed()
    const own = chat()
    await withCallSettings({ idempotencyKey: 'once' }, async () => {
      await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
      const headers = { 'idempotency-key': 'mine' }
      await (await fetch(provider.openaiUrl + chatUrl, { ...own, headers })).text()
    })
    expect(provider.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['once', 'mine'])
  })

  test('may be asked for by a Request, or send a form', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed()
    const request = new Request(provider.openaiUrl + chatUrl, chat())
    expect(await (await fetch(request)).text()).toContain('[DONE]')
    expect(calls).toMatchObject([{ model: 'test-model', outcome: 'ok' }])
    const form = new FormData()
    form.set('file', new Blob(['abc']), 'audio.wav')
    const answer = await fetch(provider.openaiUrl + chatUrl, { method: 'POST', body: form })
    // it has arrived, and is no JSON
    expect(answer.status).toBe(400)
  })

  test('for no stream is idle only once its body has begun, and then soon', async () => {
    await using provider = await localProvider({
      script: { headersAfter: 500, steps: [{ text: 'x' }], ending: 'silence' },
    })
    const { fetch, nextCall } = governed({ firstToken: 100, idle: 100 })
    const response = await fetch(provider.openaiUrl + chatUrl, chat({ stream: false }))
    expect(await failureOf(response.json())).toMatchObject({ code: 'STREAM_STALLED' })
    expect(await nextCall()).toMatchObject({
      outcome: 'stream_stalled',
      timings: { headers: expect.any(Number) },
    })
  })

  test('is kept alive by comments where their limit is apart', async () => {
    const comments = { keepAlive: 12, every: 100 }
    await using provider = await localProvider({
      script: { steps: [{ tokens: 1 }, comments, { tokens: 1 }, comments], ending: 'silence' },
    })
    const { fetch, nextCall } = governed({ idle: { content: 8_000, transport: 600 } })
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    expect(await failureOf(response.text())).toMatchObject({ code: 'STREAM_STALLED', budget: 600 })
    expect(await nextCall()).toMatchObject({ contentChunks: 2 })
    expect(provider.requests[0]?.tokensSent).toBe(2)
  })

  test('hands on what had come before it stalled, to however slow a reader', async () => {
    await using provider = await localProvider({ script: tokensThenSilence(5) })
    const { fetch, nextCall } = governed({ idle: 100 })
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    await nextCall()
    let text = ''
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
    })()
    expect(await failureOf(reading)).toMatchObject({ code: 'STREAM_STALLED' })
    expect(text.match(/word/g)).toHaveLength(5)
  })
})

describe("a provider's connection", () => {
  test('is used again after an answer that has ended well', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed()
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    // the answer ends a moment after its last event
    await provider.requests[0]?.closed
    await new Promise(setImmediate)
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 1])
    expect(calls[1]?.timings.connect).toBe(0)
  })

  test('that stays open after the last event is closed', async () => {
    await using provider = await localProvider({ script: { ending: 'linger' } })
    const { fetch } = governed()
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    // its reader does not wait for that
    await turns(20)
    expect(provider.openConnections).toBe(1)
    expect(await provider.requests[0]?.closed).toMatchObject({ byClient: true })
  })

  test('is closed once a limit has passed, and no further token is made', async () => {
    await using provider = await localProvider({ script: steadyTokens(1_000, 20) })
    const { fetch } = governed({ total: 300 })
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    await failureOf(response.text())
    expect(await provider.requests[0]?.closed).toMatchObject({ byClient: true })
    expect(provider.requests[0]?.tokensSent).toBeLessThan(30)
  })

  test('is closed when the reader cancels the body', async () => {
    await using provider = await localProvider({ script: steadyTokens(1_000, 20) })
    const { fetch, nextCall } = governed()
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    await provider.requests[0]?.sent(2)
    await response.body?.cancel()
    expect(await nextCall()).toMatchObject({
      outcome: 'cancelled',
      complete: false,
      error: { code: 'CANCELLED' },
    })
    expect(await provider.requests[0]?.closed).toMatchObject({ byClient: true })
  })

  test('that is still being made is given up with the call', async () => {
    await using hole = await blackHole()
    const { fetch, nextCall } = governed()
    const controller = new AbortController()
    await turns(50)
    const before = connecting()
    const failure = failureOf(
      fetch(`${hole.url}/v1/chat/completions`, { ...chat(), signal: controller.signal }),
    )
    while (connecting() === before) await new Promise(setImmediate)
    controller.abort()
    await failure
    expect(await nextCall()).toMatchObject({ outcome: 'cancelled', timings: {} })
    await turns(10)
    expect(connecting()).toBe(before)
  })

  test('that is refused says so, without the codes that some SDKs retry by themselves', async () => {
    const provider = await localProvider()
    await provider.close()
    const { fetch, calls } = governed()
    const failure = await failureOf(fetch(provider.openaiUrl + chatUrl, chat()))
    expect(failure).toMatchObject({
      code: 'UPSTREAM_ERROR',
      message: expect.stringContaining('ECONNREFUSED'),
    })
    const codes: unknown[] = []
    for (let link = failure; link instanceof Error; link = link.cause)
      codes.push((link as { code?: unknown }).code)
    expect(codes).toEqual(['UPSTREAM_ERROR', undefined])
    expect(calls).toMatchObject([{ outcome: 'upstream_error', usage: { estimated: false } }])
    expect(calls[0]?.usage.inputTokens).toBeUndefined()
  })

  test("is not cut by limits of undici's own", async () => {
    await using provider = await localProvider({ script: { headersAfter: 1_500 } })
    const usual = getGlobalDispatcher()
    onTestFinished(() => setGlobalDispatcher(usual))
    setGlobalDispatcher(new Agent({ headersTimeout: 100, bodyTimeout: 100 }))
    const { fetch } = governed()
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    expect(await response.text()).toContain('[DONE]')
  })
})

describe('an answer that is an error', () => {
  test('reaches the SDK as it is, told not to be retried, and stands in the record', async () => {
    await using provider = await localProvider({
      script: errorAnswer(
        429,
        { code: 'insufficient_quota', message: 'no money' },
        { 'retry-after': '3600' },
      ),
    })
    const { fetch, nextCall } = governed()
    const deadline = Deadline.after(30_000)
    const response = await runWithDeadline(deadline, () => fetch(provider.openaiUrl + chatUrl, chat()))
    expect(response.status).toBe(429)
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(response.headers.get('retry-after')).toBe('3600')
    expect(await response.json()).toMatchObject({ error: { code: 'insufficient_quota' } })
    const call = await nextCall()
    expect(call).toMatchObject({
      outcome: 'upstream_error',
      complete: false,
      status: 429,
      retryAfter: 3_600_000,
      providerCode: 'insufficient_quota',
      error: { code: 'UPSTREAM_ERROR', retryAfter: 3_600_000, message: expect.stringContaining('no money') },
    })
    expect(call.usage).toEqual({ estimated: false })
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'upstream_error' }])
  })

  test('leaves its connection usable', async () => {
    await using provider = await localProvider({ script: [errorAnswer(500), {}] })
    const { fetch } = governed()
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    await provider.requests[0]?.closed
    await new Promise(setImmediate)
    await (await fetch(provider.openaiUrl + chatUrl, chat())).text()
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 1])
  })
})

describe("an SDK's own retry", () => {
  test('is refused without any I/O, and warned of once', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed()
    const warnings: string[] = []
    const listener = ({ message }: Error): number => warnings.push(message)
    process.on('warning', listener)
    onTestFinished(() => void process.off('warning', listener))
    const retry = { ...chat(), headers: { 'x-stainless-retry-count': '1' } }
    for (let times = 0; times < 2; times += 1) {
      const answer = await fetch(provider.openaiUrl + chatUrl, retry)
      expect(answer.status).toBe(503)
      expect(answer.headers.get('x-should-retry')).toBe('false')
    }
    await new Promise(setImmediate)
    expect(warnings.filter((message) => message.includes('maxRetries: 0'))).toHaveLength(1)
    expect(provider.requests).toHaveLength(0)
    expect(calls).toMatchObject([
      { sdkRetry: true, outcome: 'error', complete: false },
      { sdkRetry: true, outcome: 'error', complete: false },
    ])
  })

  test('is not what its first attempt is', async () => {
    await using provider = await localProvider()
    const { fetch, calls } = governed()
    const first = { ...chat(), headers: { 'x-stainless-retry-count': '0' } }
    await (await fetch(provider.openaiUrl + chatUrl, first)).text()
    expect(calls).toMatchObject([{ sdkRetry: false, outcome: 'ok' }])
  })
})

describe('what an answer that was left has cost', () => {
  test('is estimated, and says so', async () => {
    await using provider = await localProvider({ script: steadyTokens(1_000, 20) })
    const { fetch, nextCall } = governed()
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    await provider.requests[0]?.sent(3)
    await response.body?.cancel()
    const { usage, contentChunks } = await nextCall()
    expect(usage).toMatchObject({ inputTokens: Math.ceil('userSay something.'.length / 4), estimated: true })
    expect(usage.outputTokens).toBeGreaterThanOrEqual(Math.max(contentChunks, 2))
  })

  test('takes the input from what Anthropic said at first, and the output not from its placeholder', async () => {
    await using provider = await localProvider({
      script: { steps: [{ tokens: 1_000, every: 20 }], usage: { input: 77, cached: 7 } },
    })
    const { fetch, nextCall } = governed()
    const response = await fetch(`${provider.url}/v1/messages`, chat())
    await provider.requests[0]?.sent(8)
    await response.body?.cancel()
    const { usage } = await nextCall()
    expect(usage).toMatchObject({ inputTokens: 77, cachedTokens: 7, estimated: true })
    expect(usage.outputTokens).toBeGreaterThan(3)
  })

  test('is learned by reading on where leaving does not stop the bill', async () => {
    await using provider = await localProvider({ script: steadyTokens(30, 20) })
    const { fetch, calls, nextCall } = governed({}, { cancelStopsBilling: false })
    const controller = new AbortController()
    const ask = { ...chat({ stream_options: { include_usage: true } }), signal: controller.signal }
    const response = await fetch(provider.openaiUrl + chatUrl, ask)
    await provider.requests[0]?.sent(3)
    controller.abort()
    await failureOf(response.text())
    expect(calls).toHaveLength(0)
    expect(await nextCall()).toMatchObject({
      outcome: 'cancelled',
      complete: false,
      usage: { outputTokens: 30, estimated: false },
    })
  })

  test('but not for ever: a limit ends that, and closes the connection', async () => {
    await using provider = await localProvider({ script: tokensThenSilence(3) })
    const { fetch, nextCall } = governed({ idle: 400 }, { cancelStopsBilling: false })
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    await provider.requests[0]?.sent(3)
    await response.body?.cancel()
    expect(await nextCall()).toMatchObject({ outcome: 'cancelled', usage: { estimated: true } })
    expect(await provider.requests[0]?.closed).toMatchObject({ byClient: true })
  })

  test('and at most for five seconds', async () => {
    await using provider = await localProvider({ script: steadyTokens(100_000, 50) })
    const { fetch, nextCall } = governed({}, { cancelStopsBilling: false })
    const response = await fetch(provider.openaiUrl + chatUrl, chat())
    const leftAt = performance.now()
    await response.body?.cancel()
    await nextCall()
    expect(performance.now() - leftAt).toBeGreaterThan(4_900)
    expect(await provider.requests[0]?.closed).toMatchObject({ byClient: true })
  })

  test('is unknown, and not nothing, for a call that was never worked on', async () => {
    await using provider = await localProvider({ script: keepAliveForEver(20) })
    const { fetch, nextCall } = governed({ firstToken: 150 })
    await failureOf((await fetch(provider.openaiUrl + chatUrl, chat())).text())
    const { usage } = await nextCall()
    expect(usage.outputTokens).toBeUndefined()
    expect(usage).toMatchObject({ estimated: true, inputTokens: expect.any(Number) })
  })
})

/** Connections that are being made in this process. */
function connecting(): number {
  return process.getActiveResourcesInfo().filter((name) => name.endsWith('ConnectWrap')).length
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate)
}
