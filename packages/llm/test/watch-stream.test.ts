import { Readable } from 'node:stream'
import { ClientClosedError, Deadline, runWithDeadline } from '@timebudget/core'
import { type Profile, watchStream } from '@timebudget/llm'
import { describe, expect, test } from 'vitest'
import { failureOf, ample } from './support/governed.ts'

const never = new Promise<never>(() => undefined)

/** A source of every kind, that tells when it has been stopped. */
const sources = {
  AsyncIterable(items: readonly unknown[], { silent }: { readonly silent: boolean }) {
    let stop: (() => void) | undefined
    const stopped = new Promise<void>((resolve) => {
      stop = resolve
    })
    let at = 0
    const source: AsyncIterable<unknown> = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          if (at < items.length) return { done: false, value: items[at++] }
          return silent ? never : { done: true, value: undefined }
        },
        return: async () => {
          stop?.()
          return { done: true, value: undefined }
        },
      }),
    }
    return { source, stopped }
  },
  ReadableStream(items: readonly unknown[], { silent }: { readonly silent: boolean }) {
    let stop: (() => void) | undefined
    const stopped = new Promise<void>((resolve) => {
      stop = resolve
    })
    const source = new ReadableStream({
      start(controller) {
        for (const item of items) controller.enqueue(item)
        if (!silent) controller.close()
      },
      cancel: () => stop?.(),
    })
    return { source, stopped }
  },
  Readable(items: readonly unknown[], { silent }: { readonly silent: boolean }) {
    const source = new Readable({ objectMode: true, read: () => undefined })
    for (const item of items) source.push(item)
    if (!silent) source.push(null)
    return { source, stopped: new Promise<void>((resolve) => void source.once('close', resolve)) }
  },
}

const silentSource = (items: readonly unknown[] = []): AsyncIterable<unknown> =>
  sources.AsyncIterable(items, { silent: true }).source

async function readAll(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = []
  for await (const item of stream) items.push(item)
  return items
}

const with_ = (changes: Partial<Profile>): Profile => ({ ...ample, ...changes })

describe.each(Object.keys(sources) as Array<keyof typeof sources>)('a watched %s', (kind) => {
  test('is what it was', async () => {
    const { source } = sources[kind](['a', 'b', 'c'], { silent: false })
    expect(await readAll(watchStream(source, 'chat'))).toEqual(['a', 'b', 'c'])
  })

  test('that says nothing fails after firstToken, and is stopped', async () => {
    const { source, stopped } = sources[kind]([], { silent: true })
    const failure = await failureOf(readAll(watchStream(source, with_({ firstToken: 50 }))))
    expect(failure).toMatchObject({ code: 'FIRST_TOKEN_TIMEOUT', operation: 'stream', budget: 50 })
    await stopped
  })

  test('that goes silent hands on what came, fails after idle, and is stopped', async () => {
    const { source, stopped } = sources[kind](['a', 'b'], { silent: true })
    const stream = watchStream(source, with_({ idle: 50 }))
    expect([await stream.next(), await stream.next()]).toMatchObject([{ value: 'a' }, { value: 'b' }])
    expect(await failureOf(stream.next())).toMatchObject({ code: 'STREAM_STALLED' })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    await stopped
  })

  test('is stopped by a reader who breaks off, as cancelled', async () => {
    const { source, stopped } = sources[kind](['a', 'b'], { silent: true })
    const deadline = Deadline.after(10_000)
    for await (const _item of watchStream(source, 'chat', { deadline })) break
    await stopped
    expect(deadline.ledger.entries).toMatchObject([{ name: 'stream', outcome: 'cancelled' }])
  })

  test('ends with the deadline, and is stopped', async () => {
    const { source, stopped } = sources[kind](['a'], { silent: true })
    const deadline = Deadline.after(80)
    const failure = await runWithDeadline(deadline, () => failureOf(readAll(watchStream(source, 'chat'))))
    expect(failure).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await stopped
  })
})

describe('a watched stream', () => {
  test('ends at its total, however lively', async () => {
    const lively = async function* (): AsyncGenerator<string> {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        yield 'word'
      }
    }
    const failure = await failureOf(readAll(watchStream(lively(), with_({ total: 100 }))))
    expect(failure).toMatchObject({ code: 'TOTAL_TIMEOUT', budget: 100 })
  })

  test('waits for a reader slower than its idle limit', async () => {
    const items = Array.from({ length: 20 }, (_, index) => `item ${index}`)
    const { source } = sources.AsyncIterable(items, { silent: false })
    const stream = watchStream(source, with_({ idle: 100 }), { ahead: 4 })
    const read: unknown[] = []
    for await (const item of stream) {
      read.push(item)
      if (read.length === 1) await new Promise((resolve) => setTimeout(resolve, 400))
    }
    expect(read).toEqual(items)
  })

  test('reads no further ahead than it may', async () => {
    let given = 0
    const endless = async function* (): AsyncGenerator<number> {
      for (;;) {
        given += 1
        yield given
      }
    }
    const stream = watchStream(endless(), 'chat', { ahead: 8 })
    await stream.next()
    await new Promise(setImmediate)
    expect(given).toBeLessThanOrEqual(9)
    await stream.return?.()
  })

  test.each([
    ['OpenAI', { choices: [{ delta: { role: 'assistant', content: '' } }] }],
    ['OpenAI', { type: 'response.created' }],
    ['Anthropic', { type: 'message_start', message: {} }],
    ['the AI SDK', { type: 'start-step' }],
    ['LangChain', { content: '', tool_call_chunks: [], additional_kwargs: {} }],
    ['anybody', ''],
    ['anybody', new Uint8Array()],
  ])('knows of %s what is no token: %j', async (_whose, item) => {
    const failure = await failureOf(readAll(watchStream(silentSource([item]), with_({ firstToken: 50 }))))
    expect(failure).toMatchObject({ code: 'FIRST_TOKEN_TIMEOUT' })
  })

  test.each([
    ['OpenAI', { choices: [{ delta: { content: 'hi' } }] }],
    ['Anthropic', { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'hm' } }],
    ['the AI SDK', { type: 'text-delta', text: 'hi' }],
    ['LangChain', { content: 'hi', tool_call_chunks: [] }],
    ['LangChain', { content: '', tool_call_chunks: [{ args: '{' }] }],
    ['anybody', { anything: true }],
    ['anybody', 'hi'],
  ])('knows of %s what is a token: %j', async (_whose, item) => {
    const profile = with_({ firstToken: 50, idle: 120 })
    const failure = await failureOf(readAll(watchStream(silentSource([item]), profile)))
    expect(failure).toMatchObject({ code: 'STREAM_STALLED' })
  })

  test('is told by its user what is a token', async () => {
    const isContent = (item: unknown): boolean => item === 'word'
    const profile = with_({ firstToken: 50 })
    const stream = watchStream(silentSource(['noise']), profile, { isContent })
    expect(await failureOf(readAll(stream))).toMatchObject({ code: 'FIRST_TOKEN_TIMEOUT' })
  })

  test('that fails is blamed on what is upstream; an error of ours stays what it is', async () => {
    const failing = (error: Error): AsyncIterable<unknown> => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }),
    })
    const broken = new Error('broken pipe')
    expect(await failureOf(readAll(watchStream(failing(broken), 'chat')))).toMatchObject({
      code: 'UPSTREAM_ERROR',
      cause: broken,
    })
    const ours = new ClientClosedError('the client left')
    const wrapped = new Error('aborted', { cause: ours })
    expect(await failureOf(readAll(watchStream(failing(wrapped), 'chat')))).toBe(ours)
  })

  test('ends for the reason of the signal it is given', async () => {
    const controller = new AbortController()
    const stream = watchStream(silentSource(), 'chat', { signal: controller.signal, operation: 'answer' })
    const failure = failureOf(stream.next())
    const left = new ClientClosedError('the client left')
    controller.abort(left)
    expect(await failure).toBe(left)
  })

  test.each([
    [() => watchStream(silentSource(), 'chatty'), /profile: none is called/],
    [() => watchStream(silentSource(), 'chat', { ahead: 0 }), /ahead/],
    [() => watchStream(silentSource(), 'chat', { timeout: 5 } as never), /timeout: no such option/],
    [() => watchStream(42 as never, 'chat'), /source: expected an AsyncIterable/],
  ])('names what it cannot read', (watch, message) => {
    expect(watch).toThrow(message)
  })
})
