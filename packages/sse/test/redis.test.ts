import { once } from 'node:events'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, test, type TestContext } from 'vitest'
import { freePort } from '../../../test/support/free-port.ts'
import { redisProgram, redisServer, startRedis } from '../../../test/support/redis-server.ts'
import {
  type EventStream,
  type PipeEnd,
  resumeStream,
  type ResumeStore,
  sse,
  stopStream,
} from '../src/index.ts'
import { framesOf } from '../src/resume/remote-frames.ts'
import { redisResume, type RedisResumeOptions } from '../src/redis.ts'
import { aborted, listen, onEnd, open, pause, signal } from './support/server.ts'

type Clients = Pick<RedisResumeOptions, 'publisher' | 'subscriber'>

interface Where {
  readonly port: number
  readonly isThere?: boolean
}

const libraries: Record<string, (where: Where) => Promise<Clients>> = {
  async 'node-redis'({ port, isThere = true }) {
    const publisher = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', () => {})
    const subscriber = publisher.duplicate().on('error', () => {})
    const connected = Promise.all([publisher.connect(), subscriber.connect()])
    connected.catch(() => {})
    if (isThere) await connected
    onEnd(() => {
      publisher.destroy()
      subscriber.destroy()
    })
    return { publisher, subscriber }
  },
  async ioredis({ port, isThere = true }) {
    const [publisher, subscriber] = [new Redis(port), new Redis(port)]
    if (isThere) await Promise.all([once(publisher, 'ready'), once(subscriber, 'ready')])
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      onEnd(() => client.disconnect())
    }
    return { publisher, subscriber }
  },
}

interface Running {
  readonly url: string
  readonly stream: Promise<EventStream>
  readonly end: Promise<PipeEnd>
}

/** A process that works, as far as one can tell from outside: its own store, its own clients. */
async function working(store: ResumeStore): Promise<Running> {
  const stream = signal<EventStream>()
  const end = signal<PipeEnd>()
  const url = await listen(async (_request, response) => {
    const made = sse(response, { resume: { store, budget: '20s' } })
    stream.resolve(made)
    end.resolve(
      await made.pipe(async function* ({ signal: until }) {
        for (let index = 0; !until.aborted; index += 1) {
          yield `${index} `
          await pause(20)
          if (index === 40) return
        }
      }),
    )
  })
  return { url, stream: stream.promise, end: end.promise }
}

/** A process that has nothing but the connections. */
async function reading(store: ResumeStore): Promise<string> {
  return listen((request, response) => {
    void (request.method === 'DELETE' ? stopStream(response, store) : resumeStream(response, store))
  })
}

describe.each(Object.entries(libraries))('through Redis by %s', (_name, connect) => {
  async function pair(
    context: TestContext,
    options: Partial<RedisResumeOptions> = {},
  ): Promise<[Running, string]> {
    const { port } = await redisServer(context)
    const stores = await Promise.all(
      [0, 1].map(async () =>
        redisResume({ ...(await connect({ port })), prefix: context.task.id, ...options }),
      ),
    )
    const [here, there] = stores as [ResumeStore, ResumeStore]
    return [await working(here), await reading(there)]
  }

  test('a stream is taken up at another process, without a gap or a repetition', async (context) => {
    const [work, other] = await pair(context)
    const first = await open(work.url)
    await first.until(/"5 "/)
    first.leave()
    const last = Number(/id: (\d+)\n[^]*?$/.exec(first.text().slice(first.text().lastIndexOf('id:')))?.[1])
    const id = (await work.stream).id ?? ''
    const second = await open(`${other}/?stream=${id}`, { headers: { 'last-event-id': String(last) } })
    expect(second.response.statusCode).toBe(200)
    expect(await second.ended).toBe('whole')
    const seen = first.text() + second.text()
    const words = [...seen.matchAll(/"text":"(\d+) "/g)].map(([, word]) => Number(word))
    expect(words).toEqual(Array.from({ length: 41 }, (_, index) => index))
    expect(await work.end).toEqual({ outcome: 'ok' })
    const third = await open(`${other}/?stream=${id}`)
    expect(await third.ended).toBe('whole')
    expect(third.text()).toMatch(/"0 "[^]*"40 "[^]*event: done/)
  })

  test('a stream is stopped from another process, at once', async (context) => {
    const [work, other] = await pair(context)
    const first = await open(work.url)
    await first.until(/"1 "/)
    const stream = await work.stream
    const stop = await open(`${other}/?stream=${stream.id}`, { method: 'DELETE' })
    expect(stop.response.statusCode).toBe(204)
    expect(await aborted(stream.signal)).toMatchObject({ code: 'CANCELLED' })
    await first.until(/CANCELLED/)
    const unknown = await open(`${other}/?stream=unknown`, { method: 'DELETE' })
    expect(unknown.response.statusCode).toBe(404)
    expect((await open(`${other}/?stream=unknown`)).response.statusCode).toBe(410)
  })

  test('work goes on while somebody reads at another process, and ends when they have left', async (context) => {
    const { port } = await redisServer(context)
    const options = { prefix: context.task.id, grace: 1_000 }
    const here = redisResume({ ...(await connect({ port })), ...options })
    const other = await reading(redisResume({ ...(await connect({ port })), ...options }))
    const streams = signal<EventStream>()
    const url = await listen((_request, response) => {
      streams.resolve(sse(response, { resume: { store: here, budget: '20s' } }))
    })
    const first = await open(url)
    await first.until(/stream/)
    const stream = await streams.promise
    const second = await open(`${other}/?stream=${stream.id}`)
    await second.until(/event: stream/)
    first.leave()
    await pause(2_500)
    expect(stream.deadline.reason).toBeUndefined()
    await stream.token('still here')
    await second.until(/still here/)
    second.leave()
    expect(await aborted(stream.signal)).toMatchObject({ code: 'CLIENT_CLOSED' })
  })
})

describe.each(Object.entries(libraries))('a Redis that is not there, by %s', (_name, connect) => {
  test('harms no stream of its own process', async () => {
    const store = redisResume(await connect({ port: await freePort(), isThere: false }))
    const work = await working(store)
    const first = await open(work.url)
    const text = await first.until(/"5 "/)
    first.leave()
    const here = await reading(store)
    const second = await open(`${here}/?stream=${(await work.stream).id}`, {
      headers: { 'last-event-id': /id: (\d+)\n/.exec(text)?.[1] ?? '' },
    })
    expect(await second.ended).toBe('whole')
    expect(second.text()).toMatch(/"40 "[^]*event: done/)
    expect(await work.end).toEqual({ outcome: 'ok' })
  })

  test('that freezes is not waited for', async (context) => {
    const server = await startRedis(redisProgram(context))
    onEnd(() => server.stop())
    const store = redisResume(await connect({ port: server.port }))
    const work = await working(store)
    server.freeze()
    const first = await open(work.url)
    expect(await first.ended).toBe('whole')
    expect(first.text()).toMatch(/"40 "[^]*event: done/)
    const asked = performance.now()
    const other = await reading(store)
    expect((await open(`${other}/?stream=unknown`)).response.statusCode).toBe(410)
    const stop = await open(`${other}/?stream=unknown`, { method: 'DELETE' })
    expect(stop.response.statusCode).toBe(404)
    expect(performance.now() - asked).toBeLessThan(8_000)
  })
})

test('who leaves a stream that another process writes leaves its channel too', async () => {
  const ends: string[] = []
  const text = new ReadableStream<string>({
    start: (controller) => controller.enqueue('id: 1\nevent: token\ndata: {}\n\nid: 2\nevent: to'),
    cancel: () => void ends.push('cancelled'),
  })
  const frames = framesOf(text, { after: 0, left: () => ends.push('left') })
  expect(await frames.next()).toMatchObject({ value: { seq: 1, isLast: false } })
  const waiting = frames.next()
  await frames.return?.()
  await frames.return?.()
  expect((await waiting).done).toBe(true)
  expect(ends).toEqual(['left', 'cancelled'])
})
