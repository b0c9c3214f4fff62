import { withDeadline } from '@timebudget/core/server'
import { currentDeadline } from '@timebudget/core'
import { describe, expect, test } from 'vitest'
import { streamChat } from '../src/browser/index.ts'
import {
  type EventStream,
  memoryResume,
  type PipeEnd,
  type ResumeOptions,
  resumeStream,
  type ResumeStore,
  sse,
  stopStream,
} from '../src/index.ts'
import { aborted, listen, open, pause, type Signal, signal } from './support/server.ts'

interface Kept {
  readonly url: string
  readonly stream: Promise<EventStream>
  readonly end: Promise<PipeEnd>
  /** Why the work was ended. */
  readonly reason: Promise<unknown>
  readonly methods: string[]
  /** Says the next token. */
  say(token: string): void
  finish(): void
}

/** A chat whose streams can be taken up again; the test says what the model says. */
async function kept(
  store: ResumeStore,
  { settings = {}, serverOptions = {} }: { settings?: Partial<ResumeOptions>; serverOptions?: object } = {},
): Promise<Kept> {
  const stream = signal<EventStream>()
  const end = signal<PipeEnd>()
  const reason = signal<unknown>()
  const methods: string[] = []
  const waiting: string[] = []
  let wake: Signal = signal()
  let isFinished = false
  async function* model(): AsyncGenerator<string> {
    for (;;) {
      const next = waiting.shift()
      if (next !== undefined) yield next
      else if (isFinished) return
      else await wake.promise
    }
  }
  const notify = (): void => {
    wake.resolve()
    wake = signal()
  }
  const url = await listen(
    withDeadline(
      async (request, response) => {
        methods.push(request.method ?? '')
        if (request.method === 'GET') return resumeStream(response, store, { heartbeat: 20 })
        if (request.method === 'DELETE') return stopStream(response, store)
        const made = sse(response, { heartbeat: 20, resume: { store, ...settings } })
        stream.resolve(made)
        void aborted(made.signal).then(reason.resolve)
        end.resolve(await made.pipe(() => model()))
      },
      { default: '20s', ...serverOptions },
    ),
  )
  return {
    url,
    methods,
    stream: stream.promise,
    end: end.promise,
    reason: reason.promise,
    say(token) {
      waiting.push(token)
      notify()
    },
    finish() {
      isFinished = true
      notify()
    },
  }
}

const idIn = (text: string): string => /"id":"([^"]+)"/.exec(text)?.[1] ?? ''

async function post(chat: Kept): ReturnType<typeof open> {
  return open(chat.url, { method: 'POST' })
}

async function take(chat: Kept, id: string, after?: number): ReturnType<typeof open> {
  return open(
    `${chat.url}/?stream=${id}`,
    after === undefined ? {} : { headers: { 'last-event-id': String(after) } },
  )
}

describe('a connection that is lost', () => {
  test('is taken up again where it was, without a gap or a repetition', async () => {
    const chat = await kept(memoryResume())
    const first = await post(chat)
    chat.say('a')
    const text = await first.until(/id: 2\nevent: token\ndata: \{"text":"a"\}/)
    expect(text).toMatch(/id: 1\nevent: stream\ndata: \{"id":"[0-9a-f-]{36}","grace":30000\}/)
    first.leave()
    chat.say('b')
    const second = await take(chat, idIn(text), 2)
    chat.say('c')
    await second.until(/"c"/)
    chat.finish()
    expect(await second.ended).toBe('whole')
    expect(second.text().replaceAll(/^:\n\n/gm, '')).toBe(
      [
        'id: 3\nevent: token\ndata: {"text":"b"}\n\n',
        'id: 4\nevent: token\ndata: {"text":"c"}\n\n',
        'id: 5\nevent: done\ndata: {}\n\n',
      ].join(''),
    )
    expect(await chat.end).toEqual({ outcome: 'ok' })
  })

  test('is still answered after the end, for the grace', async () => {
    const chat = await kept(memoryResume({ grace: 300 }))
    const first = await post(chat)
    chat.say('a')
    const id = idIn(await first.until(/"a"/))
    first.leave()
    chat.finish()
    await chat.end
    const second = await take(chat, id)
    expect(await second.ended).toBe('whole')
    expect(second.text()).toMatch(/"a"[^]*done/)
    await pause(400)
    const third = await take(chat, id)
    expect(third.response.statusCode).toBe(410)
    await third.ended
    expect(JSON.parse(third.text())).toMatchObject({ code: 'STREAM_GONE', status: 410 })
  })

  test('alone ends nothing before the grace is over, then it ends the work', async () => {
    const chat = await kept(memoryResume({ grace: 400 }))
    const first = await post(chat)
    await first.until(/stream/)
    const left = performance.now()
    first.leave()
    expect(await chat.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(performance.now() - left).toBeGreaterThan(390)
    expect(await chat.end).toEqual({ outcome: 'client_closed' })
  })

  test('that is back within the grace keeps the work', async () => {
    const chat = await kept(memoryResume({ grace: 300 }))
    const first = await post(chat)
    const id = idIn(await first.until(/stream/))
    first.leave()
    const second = await take(chat, id, 1)
    await pause(500)
    const stream = await chat.stream
    expect(stream.signal.aborted).toBe(false)
    chat.say('still here')
    await second.until(/still here/)
  })

  test('of one reader is not that of another', async () => {
    const chat = await kept(memoryResume({ grace: 0 }))
    const first = await post(chat)
    const id = idIn(await first.until(/stream/))
    const second = await take(chat, id)
    await second.until(/stream/)
    first.leave()
    await pause(100)
    chat.say('for the second')
    await second.until(/for the second/)
    second.leave()
    expect(await chat.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
  })
})

describe('a user who stops', () => {
  test('ends the work at once, whatever the grace', async () => {
    const chat = await kept(memoryResume({ grace: '10m' }))
    const first = await post(chat)
    const id = idIn(await first.until(/stream/))
    const stopped = performance.now()
    const stop = await open(`${chat.url}/?stream=${id}`, { method: 'DELETE' })
    expect(stop.response.statusCode).toBe(204)
    expect(await chat.reason).toMatchObject({ code: 'CANCELLED' })
    expect(performance.now() - stopped).toBeLessThan(1_000)
    expect(await first.ended).toBe('whole')
    expect(first.text()).toMatch(/event: error\ndata: .*"code":"CANCELLED".*"partial":true/)
    expect(await chat.end).toEqual({ outcome: 'cancelled' })
    const again = await open(`${chat.url}/?stream=${id}`, { method: 'DELETE' })
    expect(again.response.statusCode).toBe(404)
  })

  test('does so from the page, by a DELETE', async () => {
    const chat = await kept(memoryResume({ grace: '10m' }))
    const page = streamChat({ url: chat.url, body: {}, onToken: () => page.stop() })
    chat.say('a')
    expect(await page.ended).toMatchObject({ outcome: 'stopped', text: 'a' })
    expect(await chat.reason).toMatchObject({ code: 'CANCELLED' })
    expect(chat.methods).toEqual(['POST', 'DELETE'])
  })
})

describe('the work', () => {
  test('stands under a deadline of its own, and ends with it for everybody', async () => {
    const chat = await kept(memoryResume(), { settings: { budget: 300 } })
    const first = await post(chat)
    const id = idIn(await first.until(/stream/))
    first.leave()
    const second = await take(chat, id, 1)
    expect(await second.ended).toBe('whole')
    expect(second.text()).toMatch(/id: 2\nevent: error\ndata: .*"code":"DEADLINE_EXCEEDED".*"partial":true/)
    expect(await chat.end).toEqual({ outcome: 'deadline_exceeded' })
  })

  test('gets what its request has left, and not its cancellation', async () => {
    const store = memoryResume()
    const seen = signal<[number, boolean]>()
    const url = await listen(
      withDeadline(
        async (_request, response) => {
          const request = currentDeadline()
          const stream = sse(response, { resume: store })
          stream.run(({ deadline }) => {
            expect(currentDeadline()).toBe(deadline)
            expect(deadline).not.toBe(request)
          })
          await aborted(request?.signal ?? AbortSignal.abort())
          seen.resolve([stream.deadline.remaining(), stream.signal.aborted])
        },
        { default: '10s' },
      ),
    )
    const client = await open(url)
    await client.until(/stream/)
    client.leave()
    const [remaining, isAborted] = await seen.promise
    expect(isAborted).toBe(false)
    expect(remaining).toBeGreaterThan(1_000)
    expect(remaining).toBeLessThanOrEqual(10_000)
  })

  test('ends with a signal such as that of a shutdown', async () => {
    const shutdown = new AbortController()
    const chat = await kept(memoryResume(), { settings: { signal: shutdown.signal } })
    const first = await post(chat)
    await first.until(/stream/)
    shutdown.abort()
    expect(await first.ended).toBe('whole')
    expect(first.text()).toMatch(/"code":"CANCELLED"/)
  })

  test('waits for a reader that is slow, and no longer than it is there', async () => {
    const writes: boolean[] = []
    const over = signal()
    const store = memoryResume({ window: 4 })
    const url = await listen(async (_request, response) => {
      const stream = sse(response, { resume: store })
      for (let index = 0; index < 30; index += 1) writes.push(await stream.token('x'.repeat(1_000_000)))
      over.resolve()
    })
    const client = await open(url)
    client.response.pause()
    await pause(500)
    expect(writes.length).toBeLessThan(25)
    expect(writes).not.toContain(false)
    client.leave()
    await over.promise
    expect(writes).toHaveLength(30)
  })
})

describe('what is kept', () => {
  test('is cut off from a reader that is too slow for work that does not wait', async () => {
    const store = memoryResume({ window: 4 })
    const url = await listen((_request, response) => {
      const stream = sse(response, { resume: store })
      for (let index = 0; index < 30; index += 1) void stream.token(String(index))
    })
    const client = await open(url)
    expect(await client.ended).toBe('broken')
  })

  test('is bounded: what fell out of the window cannot be taken up', async () => {
    const chat = await kept(memoryResume({ window: 3 }))
    const first = await post(chat)
    for (const token of ['a', 'b', 'c', 'd']) chat.say(token)
    const id = idIn(await first.until(/"d"/))
    expect((await take(chat, id, 1)).response.statusCode).toBe(410)
    const later = await take(chat, id, 2)
    expect(await later.until(/"d"/)).toMatch(/"b"[^]*"c"[^]*"d"/)
    expect((await take(chat, id, 99)).response.statusCode).toBe(410)
    expect((await take(chat, 'unknown', 0)).response.statusCode).toBe(410)
    const nonsense = { headers: { 'last-event-id': '-1' } }
    expect((await open(`${chat.url}/?stream=${id}`, nonsense)).response.statusCode).toBe(410)
    expect((await open(chat.url)).response.statusCode).toBe(410)
  })

  test('is bounded by its size too', async () => {
    const chat = await kept(memoryResume({ characters: 300 }))
    const first = await post(chat)
    for (const token of ['a', 'b', 'c']) chat.say(token.repeat(100))
    const id = idIn(await first.until(/c{100}/))
    expect((await take(chat, id, 1)).response.statusCode).toBe(410)
    expect((await take(chat, id, 3)).response.statusCode).toBe(200)
  })

  test('makes room for new streams where others have ended, else those cannot be taken up', async () => {
    const store = memoryResume({ streams: 1, grace: '10m' })
    const finished = await kept(store)
    const first = await post(finished)
    await first.until(/stream/)
    finished.finish()
    await first.ended
    const running = await kept(store)
    const second = await post(running)
    await second.until(/event: stream/)
    const lost = await kept(store)
    const third = await post(lost)
    lost.say('a')
    expect(await third.until(/"a"/)).not.toContain('event: stream')
    third.leave()
    expect(await lost.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
  })

  test('has names that are given once', () => {
    const store = memoryResume()
    const work = { stop() {}, unwatched() {} }
    store.open('a', work)
    expect(() => store.open('a', work)).toThrow(/already/)
    expect(() => memoryResume({ window: 0 })).toThrow(/window/)
    expect(() => memoryResume({ streams: 1.5 })).toThrow(/streams/)
    expect(() => memoryResume({ grace: -1 })).toThrow(/grace/)
  })
})

describe('a page whose connection is cut', () => {
  test('goes on by GET, and neither loses nor doubles a token, however often', async () => {
    const store = memoryResume()
    const sockets = new Set<{ destroy(): void }>()
    const tokens = Array.from({ length: 60 }, (_, index) => `${index} `)
    const methods: string[] = []
    const url = await listen(async (request, response) => {
      methods.push(request.method ?? '')
      sockets.add(request.socket)
      if (request.method === 'GET') return resumeStream(response, store)
      await sse(response, { resume: store }).pipe(async function* () {
        for (const token of tokens) {
          yield token
          await pause(20)
        }
      })
    })
    let cuts = 0
    const page = streamChat({
      url,
      body: {},
      onToken(_text) {
        if (page.text.split(' ').length % 20 === 0 && cuts < 3) {
          cuts += 1
          for (const socket of sockets) socket.destroy()
          sockets.clear()
        }
      },
    })
    expect(await page.ended).toMatchObject({ outcome: 'done', text: tokens.join('') })
    expect(methods[0]).toBe('POST')
    expect(methods.slice(1).length).toBeGreaterThanOrEqual(2)
    expect(new Set(methods.slice(1))).toEqual(new Set(['GET']))
  })

  test('is interrupted, and keeps its text, when the stream is gone', async () => {
    const methods: string[] = []
    const url = await listen((request, response) => {
      methods.push(request.method ?? '')
      if (request.method === 'GET') return resumeStream(response, memoryResume())
      const stream = sse(response, { resume: memoryResume() })
      void stream.token('so far').then(() => setTimeout(() => response.destroy(), 50))
    })
    const end = await streamChat({ url, body: {} }).ended
    expect(end).toMatchObject({ outcome: 'interrupted', text: 'so far', status: 410, code: 'STREAM_GONE' })
    expect(methods).toEqual(['POST', 'GET'])
  })

  test('goes on when the server was away for a moment, or fell silent', async () => {
    const store = memoryResume()
    const methods: string[] = []
    const heard: string[] = []
    const url = await listen((request, response) => {
      methods.push(request.method ?? '')
      heard.push(String(request.headers['last-event-id']))
      if (methods.length === 2) return void response.writeHead(503).end()
      if (methods.length === 3) return // never answers
      if (request.method === 'GET') return void resumeStream(response, store)
      const stream = sse(response, { resume: store, heartbeat: null })
      void stream.token('a').then(() => setTimeout(() => response.destroy(), 50))
      setTimeout(() => void stream.token('b').then(() => stream.done()), 1_000)
    })
    let reconnects = 0
    const page = streamChat({ url, body: {}, idle: 500, onReconnect: () => (reconnects += 1) })
    expect(await page.ended).toMatchObject({ outcome: 'done', text: 'ab' })
    expect(methods).toEqual(['POST', 'GET', 'GET', 'GET'])
    expect(heard).toEqual(['undefined', '2', '2', '2'])
    expect(reconnects).toBe(3)
  })
})

describe('a page whose answer does not go on', () => {
  test('ends it at the server too: a live connection is not sought again', async () => {
    const chat = await kept(memoryResume())
    chat.say('so far')
    const page = streamChat({ url: chat.url, body: {}, idle: { content: 300, transport: '5s' } })
    expect(await page.ended).toMatchObject({ outcome: 'stalled', text: 'so far' })
    expect(await chat.reason).toMatchObject({ code: 'CANCELLED' })
    expect(chat.methods).toEqual(['POST', 'DELETE'])
  })

  test('does not blame the model for the time in which there was no connection', async () => {
    const store = memoryResume()
    const methods: string[] = []
    const url = await listen((request, response) => {
      methods.push(request.method ?? '')
      if (methods.length === 5) return resumeStream(response, store)
      if (request.method === 'GET') return response.writeHead(503).end()
      const stream = sse(response, { resume: store })
      void stream.token('a').then(() => setTimeout(() => response.destroy(), 50))
      setTimeout(() => void stream.token('b').then(() => stream.done()), 100)
    })
    // the four waits are of 100, 200, 400 and 800 ms at the least
    const page = streamChat({ url, body: {}, idle: { content: 600, transport: '5s' } })
    expect(await page.ended).toMatchObject({ outcome: 'done', text: 'ab' })
    expect(methods).toEqual(['POST', 'GET', 'GET', 'GET', 'GET'])
  })
})

test('a server whose resumed streams are read through the middleware holds no connection open', async () => {
  const chat = await kept(memoryResume(), { serverOptions: { default: 300 } })
  const first = await post(chat)
  expect(await first.ended).toBe('whole')
  expect(first.text().match(/event: error/g)).toHaveLength(1)
  expect(await chat.end).toEqual({ outcome: 'deadline_exceeded' })
})
