import type { IncomingMessage, ServerResponse } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { describe, expect, test, vi } from 'vitest'
import { type ChatEnd, messages, streamChat, type Thinking } from '../src/browser/index.ts'
import { sse } from '../src/index.ts'
import { listen, pause, signal } from './support/server.ts'

interface Asked {
  readonly url: string
  /** Methods in the order in which they came. */
  readonly methods: string[]
  readonly requests: IncomingMessage[]
  readonly left: Promise<void>
}

/** A server that keeps count. */
async function asked(
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<Asked> {
  const methods: string[] = []
  const requests: IncomingMessage[] = []
  const left = signal()
  const url = await listen((request, response) => {
    methods.push(request.method ?? '')
    requests.push(request)
    response.once('close', () => {
      if (!response.writableFinished) left.resolve()
    })
    void handle(request, response)
  })
  return { url, methods, requests, left: left.promise }
}

const body = { prompt: 'why' }

describe('an answer', () => {
  test('comes as thinking, tokens, own events and done', async () => {
    const server = await asked(async (_request, response) => {
      const stream = sse(response, { heartbeat: 30 })
      await pause(50)
      await stream.token({ text: 'let me see', type: 'reasoning' })
      await stream.send('sources', ['a'])
      await stream.token({ text: '{', type: 'tool' })
      await stream.token('Be')
      await stream.token({ text: 'cause', rung: 'small' } as { text: string })
      await stream.done({ cost: 1 })
    })
    const seen: unknown[] = []
    const thoughts: Thinking[] = []
    const chat = streamChat({
      url: server.url,
      body,
      onThinking: (thinking) => thoughts.push(thinking),
      onToken: (text, data) => seen.push([text, data]),
      onEvent: (event, data) => seen.push([event, data]),
      onDone: (end) => seen.push(end.outcome),
      onError: (end) => seen.push(end),
    })
    expect(await chat.ended).toEqual({ outcome: 'done', text: 'Because', message: '', data: { cost: 1 } })
    expect(chat.text).toBe('Because')
    expect(seen).toEqual([
      ['sources', ['a']],
      ['{', { text: '{', type: 'tool' }],
      ['Be', { text: 'Be' }],
      ['cause', { text: 'cause', rung: 'small' }],
      'done',
    ])
    expect(thoughts[0]?.elapsed).toBeGreaterThan(0)
    expect(thoughts.at(-1)?.text).toBe('let me see')
  })

  test('is asked for once, with the deadline that the page gives it', async () => {
    const texts: string[] = []
    const server = await asked(async (request, response) => {
      for await (const chunk of request) texts.push(String(chunk))
      await sse(response).done()
    })
    await streamChat({ url: server.url, body, budget: '1.5s', headers: { 'x-own': '1' } }).ended
    expect(server.methods).toEqual(['POST'])
    expect(texts.join('')).toBe('{"prompt":"why"}')
    const { headers } = server.requests[0] ?? {}
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'x-own': '1',
    })
    const relative = Number(headers?.['x-request-timeout-ms'])
    expect(relative).toBeGreaterThan(1_000)
    expect(relative).toBeLessThanOrEqual(1_500)
    expect(headers?.['x-request-deadline']).toMatch(/^\d{13}$/)
    expect(Math.abs(Number(headers?.['x-request-deadline']) - Date.now() - 1_500)).toBeLessThan(1_500)
  })

  test('is whole whatever ids a server gives that does not keep it', async () => {
    const server = await asked((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const id of ['9', '9', '', '3']) response.write(`id: ${id}\nevent: token\ndata: {"text":"x"}\n\n`)
      response.end('event: done\ndata: {}\n\n')
    })
    expect(await streamChat({ url: server.url, body }).ended).toMatchObject({ outcome: 'done', text: 'xxxx' })
  })

  test('is over with its last event, though the connection stays open', async () => {
    const server = await asked((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: done\ndata: {}\n\nevent: token\ndata: {"text":"late"}\n\n')
    })
    expect(await streamChat({ url: server.url, body }).ended).toMatchObject({ outcome: 'done', text: '' })
    await server.left
  })
})

describe('an answer goes on', () => {
  test('with pieces of reasoning, of tool calls, and with events of your own', async () => {
    const server = await asked(async (_request, response) => {
      const stream = sse(response)
      for (const type of ['reasoning', 'tool', 'text']) {
        for (let piece = 0; piece < 10; piece += 1) {
          await stream.token({ text: 'x', type })
          await pause(100)
        }
      }
      for (let page = 0; page < 10; page += 1) {
        await stream.send('sources', [page])
        await pause(100)
      }
      await stream.done()
    })
    expect(await streamChat({ url: server.url, body, idle: 800 }).ended).toMatchObject({ outcome: 'done' })
  })

  test('only once it has begun: before, the limit of the first token counts', async () => {
    const server = await asked(async (_request, response) => {
      const stream = sse(response, { heartbeat: 30 })
      await stream.send('sources', [])
      await pause(500)
      await stream.token('at last')
      await stream.done()
    })
    const chat = streamChat({ url: server.url, body, idle: { content: 100, transport: 300 } })
    expect(await chat.ended).toMatchObject({ outcome: 'done', text: 'at last' })
  })

  test('by default through a silence in which its server passes on to another model', async () => {
    const signsOfLife: number[] = []
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let answer: ServerResponse | undefined
      const server = await asked((_request, response) => {
        answer = response.writeHead(200, { 'content-type': 'text/event-stream' })
        answer.write('event: token\ndata: {"text":"hm","type":"reasoning"}\n\n')
      })
      const chat = streamChat({ url: server.url, body, onThinking: () => signsOfLife.push(Date.now()) })
      // a model's limit of 8 s for silence, and the next one's of 8 s for its first token
      for (const beats of [1, 2, 3]) {
        await vi.waitUntil(() => signsOfLife.length === beats)
        await vi.advanceTimersByTimeAsync(8_000)
        answer?.write('event: heartbeat\ndata: {}\n\n')
      }
      answer?.end('event: done\ndata: {}\n\n')
      expect(await chat.ended).toMatchObject({ outcome: 'done' })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('every other end keeps the text and has a word for people', () => {
  const token = 'event: token\ndata: {"text":"so far"}\n\n'
  const begin = (response: ServerResponse, text: string): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(text)
  }

  async function endOf(
    handle: (request: IncomingMessage, response: ServerResponse) => unknown,
    options: Partial<Parameters<typeof streamChat>[0]> = {},
  ): Promise<{ end: ChatEnd; server: Asked }> {
    const server = await asked(handle)
    const told: ChatEnd[] = []
    const end = await streamChat({
      url: server.url,
      body,
      onDone: () => told.push({ outcome: 'done', text: 'wrong', message: '' }),
      onError: (error) => told.push(error),
      ...options,
    }).ended
    expect(told).toEqual([end])
    expect(server.methods).toEqual(['POST'])
    expect(end.message).not.toBe('')
    return { end, server }
  }

  test('stopped by its user: the server hears of it at once', async () => {
    const server = await asked((_request, response) => begin(response, token))
    const chat = streamChat({ url: server.url, body, onToken: () => chat.stop() })
    expect(await chat.ended).toEqual({ outcome: 'stopped', text: 'so far', message: messages.en.stopped })
    await server.left
    chat.stop()
  })

  test('no first token in time, heartbeats or not', async () => {
    const { end, server } = await endOf((_request, response) => void sse(response, { heartbeat: 20 }), {
      firstToken: 150,
    })
    expect(end).toEqual({ outcome: 'first_token', text: '', message: messages.en.first_token })
    await server.left
  })

  test('a first token lifts that limit, for reasoning too', async () => {
    const server = await asked(async (_request, response) => {
      const stream = sse(response)
      await stream.token({ text: 'hm', type: 'reasoning' })
      await pause(250)
      await stream.done()
    })
    expect(await streamChat({ url: server.url, body, firstToken: 150 }).ended).toMatchObject({
      outcome: 'done',
    })
  })

  test('a server that has gone quiet', async () => {
    const { end } = await endOf((_request, response) => begin(response, token), { idle: 100 })
    expect(end).toEqual({ outcome: 'stalled', text: 'so far', message: messages.en.stalled })
  })

  test('a server that does not answer at all', async () => {
    const { end } = await endOf(() => {}, { idle: 100 })
    expect(end.outcome).toBe('stalled')
  })

  const alive = (response: ServerResponse): void => {
    begin(response, token)
    const timer = setInterval(() => response.write(':\n\nevent: heartbeat\ndata: {}\n\n'), 40)
    response.once('close', () => clearInterval(timer))
  }

  test('an answer that does not go on, though its server shows signs of life', async () => {
    const { end, server } = await endOf((_request, response) => alive(response), { idle: 200 })
    expect(end).toEqual({ outcome: 'stalled', text: 'so far', message: messages.en.stalled })
    await server.left
  })

  test('a model that is silent longer than its server may be, where the two are given apart', async () => {
    const { end } = await endOf((_request, response) => alive(response), {
      idle: { content: '30s', transport: 200 },
      total: 700,
    })
    expect(end).toEqual({ outcome: 'total', text: 'so far', message: messages.en.total })
  })

  test("the server's deadline", async () => {
    const { end } = await endOf(
      withDeadline(async (_request, response) => void (await sse(response).token('so far'))),
      { budget: 150, language: 'zh' },
    )
    expect(end).toMatchObject({
      outcome: 'deadline',
      code: 'DEADLINE_EXCEEDED',
      text: 'so far',
      message: messages.zh.deadline,
    })
  })

  test("the server's deadline before a stream has begun", async () => {
    const { end } = await endOf(
      withDeadline(() => new Promise(() => {})),
      { budget: 100 },
    )
    expect(end).toMatchObject({ outcome: 'deadline', status: 504, code: 'DEADLINE_EXCEEDED' })
  })

  test('a server that is too busy, which is no lack of time', async () => {
    const { end } = await endOf((_request, response) => {
      response.writeHead(503, { 'x-deadline-outcome': 'shed' }).end()
    })
    expect(end).toMatchObject({ outcome: 'http_error', status: 503 })
  })

  test('an end of the body without a last event', async () => {
    const { end } = await endOf((_request, response) => {
      begin(response, `${token}event: done\ndata: {}`)
      response.end()
    })
    expect(end).toEqual({ outcome: 'interrupted', text: 'so far', message: messages.en.interrupted })
  })

  test('a connection that breaks', async () => {
    const { end } = await endOf((_request, response) => {
      begin(response, token)
      setTimeout(() => response.destroy(), 50)
    })
    expect(end).toMatchObject({ outcome: 'interrupted', text: 'so far' })
  })

  test('a failure that the server tells', async () => {
    const { end } = await endOf((_request, response) => sse(response).error({ code: 'NO_CREDIT' }))
    expect(end).toMatchObject({ outcome: 'failed', code: 'NO_CREDIT', data: { partial: true } })
  })

  test('a status that is no success, which is not asked again', async () => {
    const { end } = await endOf((_request, response) => {
      response.writeHead(500, { 'content-type': 'application/problem+json' }).end('{"code":"BROKEN"}')
    })
    expect(end).toEqual({
      outcome: 'http_error',
      status: 500,
      code: 'BROKEN',
      data: { code: 'BROKEN' },
      text: '',
      message: messages.en.http_error,
    })
  })

  test("a page where a stream was expected, and messages of one's own", async () => {
    const { end } = await endOf((_request, response) => response.end('<html>'), {
      messages: { http_error: 'Oh.' },
    })
    expect(end).toMatchObject({ outcome: 'http_error', status: 200, data: '<html>', message: 'Oh.' })
  })
})

test('a page whose callback throws hears of it where it hears of its other mistakes, and has its answer', async () => {
  const failure = new Error("the page's own")
  const reported = new Promise((resolve) => {
    const others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection').once('unhandledRejection', (reason) => {
      for (const other of others) process.on('unhandledRejection', other)
      resolve(reason)
    })
  })
  const server = await asked((_request, response) =>
    sse(response).pipe(
      (async function* () {
        yield 'a'
      })(),
    ),
  )
  const chat = streamChat({
    url: server.url,
    body,
    onToken() {
      throw failure
    },
  })
  expect(await chat.ended).toMatchObject({ outcome: 'done', text: 'a' })
  expect(await reported).toBe(failure)
})

test('what cannot be read or sent is refused before anything is asked', () => {
  const url = 'http://127.0.0.1:1'
  // @ts-expect-error: no duration
  expect(() => streamChat({ url, body, budget: 'soon' })).toThrow(/budget: expected a duration/)
  expect(() => streamChat({ url, body, firstToken: 0 })).toThrow(/firstToken/)
  expect(() => streamChat({ url, body, idle: Number.NaN })).toThrow(/idle/)
  expect(() => streamChat({ url, body, idle: { content: '1s', transport: 0 } })).toThrow(/idle/)
  // @ts-expect-error: half of it
  expect(() => streamChat({ url, body, idle: { content: '1s' } })).toThrow(/idle/)
  expect(() => streamChat({ url, body, total: -1 })).toThrow(/total/)
  expect(() => streamChat({ url, body: 1n })).toThrow(/BigInt/)
})

test('limits may be as long as one likes', async () => {
  const server = await asked((_request, response) => sse(response).done())
  const chat = streamChat({
    url: server.url,
    body,
    budget: '60m',
    total: Infinity,
    idle: 2 ** 40,
    firstToken: '1000m',
  })
  expect(await chat.ended).toMatchObject({ outcome: 'done' })
})

test('both languages have all messages', () => {
  expect(Object.keys(messages.zh)).toEqual(Object.keys(messages.en))
})
