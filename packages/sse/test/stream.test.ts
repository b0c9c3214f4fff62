import { once } from 'node:events'
import { connect } from 'node:net'
import { createServer as createHttp2Server, connect as connectHttp2 } from 'node:http2'
import { withDeadline } from '@timebudget/core/server'
import { currentDeadline, Deadline, runWithDeadline } from '@timebudget/core'
import { describe, expect, test } from 'vitest'
import { type EventStream, sse } from '../src/index.ts'
import { aborted, listen, onEnd, open, pause, signal } from './support/server.ts'

async function* words(...all: string[]): AsyncGenerator<string> {
  for (const word of all) yield word
}

/** A source that says this much and then nothing, and does not hear of any abort. */
async function* deaf(...all: string[]): AsyncGenerator<string> {
  yield* words(...all)
  await new Promise(() => {})
}

describe('a stream', () => {
  test('answers at once, in a form that no proxy or compressor holds back', async () => {
    const url = await listen((_request, response) => void sse(response, { retry: '2s' }))
    const client = await open(url)
    expect(await client.until(/\n\n.*\n\n/)).toBe(':\n\nretry: 2000\n\n')
    expect(client.response.statusCode).toBe(200)
    expect(client.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  })

  test('answers HEAD too', async () => {
    const url = await listen((_request, response) => void sse(response))
    const client = await open(url, { method: 'HEAD' })
    expect(client.response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  })

  test("sends tokens, events of one's own, and done", async () => {
    const url = await listen(async (_request, response) => {
      const stream = sse<{ sources: string[]; done: { model: string } }>(response)
      await stream.send('sources', ['a'], { id: '7' })
      await stream.token('one\ntwo')
      await stream.token({ text: '3', type: 'reasoning' })
      expect(await stream.done({ model: 'small' })).toBe(true)
      expect(stream.closed).toBe(true)
      expect(await stream.token('late')).toBe(false)
      expect(await stream.done({ model: 'late' })).toBe(false)
    })
    const client = await open(url)
    expect(await client.ended).toBe('whole')
    expect(client.text()).toBe(
      [
        ':\n\n',
        'id: 7\nevent: sources\ndata: ["a"]\n\n',
        'event: token\ndata: {"text":"one\\ntwo"}\n\n',
        'event: token\ndata: {"text":"3","type":"reasoning"}\n\n',
        'event: done\ndata: {"model":"small"}\n\n',
      ].join(''),
    )
  })

  test('refuses names that would break its lines, and keeps what breaks the handler from the client', async () => {
    const url = await listen(async (_request, response) => {
      const stream = sse(response)
      expect(() => stream.send('a\nb', 1)).toThrow(/event: expected one line/)
      expect(() => stream.send('a', 1, { id: '' })).toThrow(/id: expected one line/)
      expect(() => stream.send('done', 1)).toThrow(/event: 'done' is not/)
      expect(() => sse(response)).toThrow(/not begun/)
      await stream.error(new Error('password is hunter2'))
    })
    const client = await open(url)
    await client.ended
    expect(client.text()).toBe(
      ':\n\nevent: error\ndata: {"code":"INTERNAL","outcome":"error","partial":true}\n\n',
    )
  })

  test('tells an error that was meant to be told', async () => {
    const url = await listen(async (_request, response) => {
      await sse(response).error({ code: 'NO_CREDIT', detail: 'top up' })
    })
    const client = await open(url)
    await client.ended
    expect(client.text()).toContain('data: {"code":"NO_CREDIT","detail":"top up","partial":true}')
  })

  test('takes over neither what is no response nor durations that are none', () => {
    // @ts-expect-error: no target
    expect(() => sse({})).toThrow(/target: expected a response/)
    // @ts-expect-error: no target, but the option is read first
    expect(() => sse({}, { heartbeat: 'soon' })).toThrow(/heartbeat/)
    // @ts-expect-error: no target, but the option is read first
    expect(() => sse({}, { heartbeat: 0 })).toThrow(/heartbeat/)
    // @ts-expect-error: no target, but the option is read first
    expect(() => sse({}, { retry: -1 })).toThrow(/retry/)
  })
})

describe('heartbeats', () => {
  test('are events while nothing has come, comments afterwards, and start anew with each write', async () => {
    const first = signal()
    const url = await listen(
      withDeadline(
        async (_request, response) => {
          const stream = sse(response, { heartbeat: 40 })
          await first.promise
          await stream.token('x')
        },
        { default: '10s' },
      ),
    )
    const client = await open(url)
    const before = await client.until(/(event: heartbeat\n[^]*){3}/)
    const data = JSON.parse(/data: (.*)/.exec(before)?.[1] ?? '')
    expect(data.elapsed).toBeGreaterThanOrEqual(39)
    expect(data.remaining).toBeLessThanOrEqual(10_000 - 39)
    first.resolve()
    const text = await client.until(/token[^]*:\n\n:\n\n:\n\n/)
    expect(text.slice(text.indexOf('token'))).toBe('token\ndata: {"text":"x"}\n\n:\n\n:\n\n:\n\n')
  })

  test('do not come while tokens do', async () => {
    const url = await listen(async (_request, response) => {
      const stream = sse(response, { heartbeat: 300 })
      for (let index = 0; index < 12; index += 1) {
        await stream.token('x')
        await pause(50)
      }
      await stream.done()
    })
    const client = await open(url)
    await client.ended
    expect(client.text().match(/^:/gm)).toHaveLength(1)
    expect(client.text()).not.toContain('heartbeat')
  })

  test('can be turned off', async () => {
    const url = await listen((_request, response) => void sse(response, { heartbeat: null }))
    const client = await open(url)
    await client.until(/:\n\n/)
    await pause(50)
    expect(client.text()).toBe(':\n\n')
  })

  test('do not pile up for a client that does not read, nor break into a frame', async () => {
    const lengths: number[] = []
    const over = signal()
    const url = await listen(async (_request, response) => {
      const stream = sse(response, { heartbeat: 10 })
      void stream.token('x'.repeat(8_000_000))
      const before = response.writableLength
      await pause(1_000)
      lengths.push(before, response.writableLength)
      over.resolve()
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onEnd(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(socket, 'connect')
    await over.promise
    const [before = 0, after = 0] = lengths
    expect(before).toBeGreaterThan(1_000_000)
    expect(after).toBeLessThanOrEqual(before)
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    while (!text.endsWith(':\n\n\r\n')) await once(socket, 'data')
    expect(text).toContain(`"${'x'.repeat(1000)}`)
    expect(text.split('event: token')[1]).toMatch(/^\ndata: \{"text":"x+"\}\n\n\r\n/)
  })
})

describe('a write', () => {
  test('settles once the client keeps up', async () => {
    const first = signal<unknown>()
    const written = signal<boolean>()
    const url = await listen(async (_request, response) => {
      const write = sse(response).token('x'.repeat(8_000_000))
      first.resolve(await Promise.race([write, pause(200).then(() => 'held back')]))
      written.resolve(await write)
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onEnd(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    expect(await first.promise).toBe('held back')
    socket.resume()
    expect(await written.promise).toBe(true)
  })

  test.each(['/', '/done'])('settles when the client leaves while it is held back: %s', async (path) => {
    const writes = signal<boolean[]>()
    const url = await listen(async (request, response) => {
      const stream = sse(response)
      const big = 'x'.repeat(8_000_000)
      const all = [stream.token(big), stream.token(big)]
      if (request.url === '/done') all.push(stream.done())
      writes.resolve(await Promise.all(all))
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    await pause(100)
    socket.destroy()
    expect(new Set(await writes.promise)).toEqual(new Set([false]))
  })

  test('settles at the deadline while it is held back, and the connection breaks', async () => {
    const write = signal<boolean>()
    const url = await listen(
      withDeadline(
        async (_request, response) => {
          write.resolve(await sse(response).token('x'.repeat(8_000_000)))
        },
        { default: 200 },
      ),
    )
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onEnd(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    expect(await write.promise).toBe(false)
    socket.on('error', () => {}).resume()
    await once(socket, 'close')
  })

  test('on a stream whose client had left before it began comes to nothing', async () => {
    const seen = signal<unknown>()
    const url = await listen(async (_request, response) => {
      await once(response, 'close')
      const stream = sse(response)
      seen.resolve([
        stream.closed,
        await stream.token('x'),
        await stream.pipe(words('a')),
        stream.signal.aborted,
      ])
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await pause(50)
    socket.destroy()
    expect(await seen.promise).toEqual([true, false, { outcome: 'client_closed' }, true])
  })
})

describe('the deadline', () => {
  test('ends the stream with exactly one error event that says it is partial', async () => {
    const end = signal<unknown>()
    const url = await listen(
      withDeadline(
        async (_request, response) => {
          end.resolve(await sse(response).pipe(() => deaf('a', 'b')))
        },
        { default: 200 },
      ),
    )
    const client = await open(url)
    expect(await client.ended).toBe('whole')
    const events = client
      .text()
      .split('\n\n')
      .filter((event) => event.startsWith('event: error'))
    expect(events).toHaveLength(1)
    expect(JSON.parse(events[0]?.split('data: ')[1] ?? '')).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      status: 504,
      partial: true,
    })
    expect(await end.promise).toEqual({ outcome: 'deadline_exceeded' })
  })

  test('does so too where no middleware keeps it', async () => {
    const end = signal<unknown>()
    const url = await listen((_request, response) => {
      void runWithDeadline(Deadline.after(200), async () => {
        end.resolve(await sse(response).pipe(() => deaf('a')))
      })
    })
    const client = await open(url)
    expect(await client.ended).toBe('whole')
    const events = client.text().split('\n\n')
    expect(events.slice(0, 2)).toEqual([':', 'event: token\ndata: {"text":"a"}'])
    expect(JSON.parse(events[2]?.replace('event: error\ndata: ', '') ?? '')).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      partial: true,
    })
    expect(events.slice(3)).toEqual([''])
    expect(await end.promise).toEqual({ outcome: 'deadline_exceeded' })
  })
})

describe('a client that leaves', () => {
  for (const [name, wrap] of [
    ['with the middleware', withDeadline],
    ['without it', (listener: Parameters<typeof withDeadline>[0]) => listener],
  ] as const) {
    test(`ends the work, ${name}`, async () => {
      const reason = signal<unknown>()
      const end = signal<unknown>()
      const url = await listen(
        wrap(async (_request, response) => {
          const stream = sse(response)
          void aborted(stream.signal).then(reason.resolve)
          end.resolve(
            await stream.pipe(({ deadline, signal: scopeSignal }) => {
              expect(currentDeadline()).toBe(deadline)
              expect(scopeSignal).toBe(stream.signal)
              return deaf('a')
            }),
          )
        }),
      )
      const client = await open(url)
      await client.until(/token/)
      client.leave()
      expect(await reason.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
      expect(await end.promise).toEqual({ outcome: 'client_closed' })
    })
  }

  test('is told from one that got all: nothing aborts then', async () => {
    const streams: EventStream[] = []
    const url = await listen(async (_request, response) => {
      const stream = sse(response)
      streams.push(stream)
      await stream.pipe(words('a'))
    })
    const client = await open(url)
    expect(await client.ended).toBe('whole')
    await pause(20)
    expect(streams.map((stream) => stream.signal.aborted)).toEqual([false])
  })

  test('by HTTP/2 ends the work too, and one that stays gets all', async () => {
    const reason = signal<unknown>()
    const server = createHttp2Server((request, response) => {
      const stream = sse(response as never)
      void aborted(stream.signal).then(reason.resolve)
      if (request.url === '/done') void stream.pipe(words('a'))
      else void stream.pipe(() => deaf('a'))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    onEnd(() => {
      session.destroy()
      server.close()
    })
    let whole = ''
    for await (const chunk of session.request({ ':path': '/done' }).setEncoding('utf8')) whole += chunk
    expect(whole).toMatch(/"a"[^]*event: done\ndata: \{\}\n\n$/)
    const asking = session.request({ ':path': '/' })
    asking.setEncoding('utf8')
    let text = ''
    for await (const chunk of asking) {
      text += chunk
      if (text.includes('token')) break
    }
    expect(await reason.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
  })
})

describe('pipe', () => {
  test('ends with done and the data asked for', async () => {
    const end = signal<unknown>()
    const url = await listen(async (_request, response) => {
      end.resolve(await sse(response).pipe(words('a', 'b'), { done: async () => ({ cost: 1 }) }))
    })
    const client = await open(url)
    await client.ended
    expect(client.text()).toMatch(/"a".*\n\n.*\n.*"b"[^]*event: done\ndata: \{"cost":1\}\n\n$/)
    expect(await end.promise).toEqual({ outcome: 'ok' })
  })

  test('tells the client that a source failed, and its caller why', async () => {
    const failure = new Error('model broke')
    const end = signal<unknown>()
    const url = await listen(async (_request, response) => {
      end.resolve(
        await sse(response).pipe(async function* () {
          yield 'a'
          throw failure
        }),
      )
    })
    const client = await open(url)
    expect(await client.ended).toBe('whole')
    expect(client.text()).toMatch(/"a"[^]*event: error\n.*"code":"INTERNAL"/)
    expect(client.text()).not.toContain('model broke')
    expect(await end.promise).toEqual({ outcome: 'error', error: failure })
  })

  test('leaves a source whose client has left, and reads no further than the client does', async () => {
    let asked = 0
    const left = signal()
    const url = await listen(async (_request, response) => {
      await sse(response).pipe(async function* () {
        try {
          for (;;) {
            asked += 1
            yield 'x'.repeat(100_000)
          }
        } finally {
          left.resolve()
        }
      })
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await pause(300)
    const before = asked
    await pause(100)
    expect(asked).toBe(before)
    expect(asked).toBeLessThan(200)
    socket.destroy()
    await left.promise
  })
})
