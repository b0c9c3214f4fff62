import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Metadata,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import {
  type CallServerOptions,
  deadlineFromCall,
  deadlineServerInterceptor,
  withDeadline,
} from '@timebudget/clients/grpc'
import { BudgetTooSmallError, currentDeadline, type Deadline, detach, operation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import { deferred } from './support/deferred.ts'
import { type GrpcServer, grpcServer, type Handled, type Respond, TextsClient } from './support/grpc-bench.ts'
import { rawCall } from './support/raw-grpc.ts'
import { servedCalls } from './support/served-calls.ts'
import { failureOf } from './support/under.ts'

const served = servedCalls()
const { finished, outcomes } = served

interface Way {
  readonly name: string
  serve(handlers: UntypedServiceImplementation, options?: CallServerOptions): Promise<GrpcServer>
}

const ways: readonly Way[] = [
  {
    name: 'deadlineServerInterceptor',
    serve: (handlers, options) => grpcServer(handlers, [deadlineServerInterceptor(options)]),
  },
  {
    name: 'withDeadline',
    serve: (handlers, options) =>
      grpcServer(
        Object.fromEntries(
          Object.entries(handlers).map(([name, handler]) => [
            name,
            withDeadline(handler as never, options) as never,
          ]),
        ),
      ),
  },
]

describe.each(ways)('a server under $name', ({ serve }) => {
  test('runs handlers of all four kinds inside the deadline of the caller', async () => {
    const seen: Array<number | undefined> = []
    const look = (call: { readonly metadata: Metadata }): void => {
      expect(currentDeadline()).toBe(deadlineFromCall(call))
      seen.push(deadlineFromCall(call)?.remaining())
    }
    await using server = await serve({
      ask: (call: Handled, respond: Respond) => {
        look(call)
        respond(null, `${call.request}!`)
      },
      collect: (call: ServerReadableStream<string, string>, respond: Respond) => {
        look(call)
        const parts: string[] = []
        call.on('data', (part: string) => parts.push(part))
        call.on('end', () => {
          look(call)
          respond(null, parts.join('+'))
        })
      },
      list: (call: ServerWritableStream<string, string>) => {
        look(call)
        for (const part of call.request) call.write(part)
        call.end()
      },
      chat: (call: ServerDuplexStream<string, string>) => {
        look(call)
        call.on('data', (part: string) => call.write(part.toUpperCase()))
        call.on('end', () => call.end())
      },
    })
    using client = new TextsClient(server.address)
    const deadline = Date.now() + 4_000
    expect(await client.ask('hi', { deadline })).toBe('hi!')
    const { call, answer } = client.collect({ deadline })
    call.write('a')
    call.write('b')
    call.end()
    expect(await answer).toBe('a+b')
    expect(await client.list('abc', { deadline }).toArray()).toEqual(['a', 'b', 'c'])
    const chat = client.chat({ deadline })
    chat.end('x')
    expect(await chat.toArray()).toEqual(['X'])
    expect(seen).toHaveLength(5)
    for (const left of seen) expect(left).toBeLessThanOrEqual(4_000)
    await expect.poll(outcomes).toEqual(['ok', 'ok', 'ok', 'ok'])
  })

  test('lets no call whose deadline has passed reach its handler: 50 of 50', async () => {
    let entered = 0
    await using server = await serve({
      ask: (_: Handled, respond: Respond) => {
        entered += 1
        respond(null, 'yes')
      },
    })
    for (const timeout of ['0m', '1n']) {
      for (let call = 0; call < 25; call += 1) {
        expect((await rawCall(server.address, { 'grpc-timeout': timeout })).status).toBe(
          status.DEADLINE_EXCEEDED,
        )
      }
    }
    const ours = await rawCall(server.address, { 'x-request-timeout-ms': '0' })
    expect(ours).toMatchObject({ status: status.DEADLINE_EXCEEDED, outcome: 'deadline_exceeded' })
    expect(entered).toBe(0)
  })

  test.each(['ask', 'collect', 'list', 'chat'] as const)(
    'answers DEADLINE_EXCEEDED at the deadline although %s hangs, once, whatever it does later',
    async (kind) => {
      let deadline: Deadline | undefined
      const lateAnswer = deferred<undefined>()
      const answerLate = async (call: { readonly metadata: Metadata }, answer: () => void): Promise<void> => {
        deadline = deadlineFromCall(call)
        await once(deadline!.signal, 'abort')
        await sleep(20)
        answer()
        answer()
        lateAnswer.resolve(undefined)
      }
      const respondLate = (call: Handled, respond: Respond): void =>
        void answerLate(call, () => respond(null, 'late'))
      const streamLate = (call: ServerWritableStream<string, string>): void => {
        call.write('begun')
        void answerLate(call, () => {
          call.write('late')
          call.end()
        })
      }
      await using server = await serve(
        { ask: respondLate, collect: respondLate, list: streamLate, chat: streamLate },
        { default: 200 },
      )
      using client = new TextsClient(server.address)
      let failure: unknown
      if (kind === 'ask') failure = await failureOf(client.ask('?'))
      else if (kind === 'collect') {
        const { call, answer } = client.collect()
        call.write('?')
        failure = await failureOf(answer)
      } else {
        const call = kind === 'list' ? client.list('?') : client.chat()
        failure = await failureOf(call.toArray())
      }
      expect(failure).toMatchObject({ code: status.DEADLINE_EXCEEDED })
      expect((failure as { metadata: Metadata }).metadata.get('x-deadline-outcome')).toEqual([
        'deadline_exceeded',
      ])
      expect(deadline?.reason?.code).toBe('DEADLINE_EXCEEDED')
      await lateAnswer.promise
      await sleep(20)
      expect(outcomes()).toEqual(['deadline_exceeded'])
      // grpc-js keeps what a stream does after its end to itself
      if (kind === 'ask' || kind === 'collect') expect(served.lateAnswers).toBe(1)
    },
  )

  test('never aborts the signal because the work went well, nor ends what has been detached', async () => {
    let deadline: Deadline | undefined
    let signal: AbortSignal | undefined
    const background = deferred<unknown>()
    await using server = await serve({
      ask: (call: Handled, respond: Respond) => {
        deadline = deadlineFromCall(call)
        signal = deadline?.signal
        detach(() => void sleep(60).then(() => background.resolve(currentDeadline())))
        respond(null, 'yes')
      },
    })
    using client = new TextsClient(server.address)
    await client.ask('?', { deadline: Date.now() + 150 })
    expect(await background.promise).toBeUndefined()
    await sleep(150)
    expect(signal?.aborted).toBe(false)
    await client.ask('?', { deadline: Date.now() + 3_600_000 })
    await expect.poll(outcomes).toEqual(['ok', 'ok'])
    deadline?.cancel()
    expect(signal?.aborted).toBe(false)
  })

  test('a client that gives up a moment before the deadline it sent is waited out: the deadline ends the call', async () => {
    const clock = new ManualClock()
    const entered = deferred<Handled>()
    await using server = await serve({ ask: (call: Handled) => entered.resolve(call) }, { clock })
    using client = new TextsClient(server.address)
    const metadata = new Metadata()
    metadata.set('x-request-timeout-ms', '1000')
    const calling = deferred<{ cancel(): void }>()
    const answer = failureOf(client.ask('?', { metadata, onCall: calling.resolve }))
    const call = await entered.promise
    const { signal } = deadlineFromCall(call)!
    clock.advance(980)
    const noticed = once(call, 'cancelled')
    ;(await calling.promise).cancel()
    await noticed
    expect([signal.aborted, outcomes()]).toEqual([false, []])
    clock.advance(20)
    expect(signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(outcomes()).toEqual(['deadline_exceeded'])
    expect(await answer).toMatchObject({ code: status.CANCELLED })
  })

  test('a client that cancels, or breaks its connection, is gone: once, and nothing is answered', async () => {
    const reasons: unknown[] = []
    const entered: Array<() => void> = []
    await using server = await serve({
      ask: (call: Handled) => {
        const { signal } = deadlineFromCall(call)!
        signal.addEventListener('abort', () => reasons.push(signal.reason.code))
        entered.shift()?.()
      },
    })
    const nextEntry = () => new Promise<void>((resolve) => entered.push(resolve))
    using client = new TextsClient(server.address)
    const entry = nextEntry()
    const cancelled = failureOf(client.ask('?', { onCall: (call) => void entry.then(() => call.cancel()) }))
    expect(await cancelled).toMatchObject({ code: status.CANCELLED })
    await expect.poll(() => reasons).toEqual(['CLIENT_CLOSED'])
    const secondEntry = nextEntry()
    const raw = new TextsClient(server.address, [], { 'grpc.use_local_subchannel_pool': 1 })
    const broken = failureOf(raw.ask('?'))
    await secondEntry
    raw.close()
    server.server.forceShutdown()
    await broken
    await expect.poll(() => reasons).toEqual(['CLIENT_CLOSED', 'CLIENT_CLOSED'])
    expect(outcomes()).toEqual(['client_closed', 'client_closed'])
    expect(finished[0]?.goneBy).toBe('h2_rst_8')
  })

  test.each(['-5S', '1.5S', '1e18', 'NaN', '5', 'S', '99999999H', '600H', '720H', '2147484S', '999999999m'])(
    'grpc-timeout: %s takes no process down',
    async (timeout) => {
      await using server = await serve({
        ask: (_: Handled, respond: Respond) => setTimeout(respond, 20, null, 'yes'),
      })
      const { status: answered } = await rawCall(server.address, { 'grpc-timeout': timeout })
      expect(answered).toBeTypeOf('number')
      expect((await rawCall(server.address, {})).status).toBe(0)
    },
  )

  test('reports what it did to callers that sent a deadline, and to no others', async () => {
    await using server = await serve({
      ask: (_: Handled, respond: Respond) =>
        void operation('think', {}, () => 'yes').then((answer) => respond(null, answer), respond),
    })
    const known = await rawCall(server.address, { 'grpc-timeout': '5S' })
    expect(known.serverTiming).toMatch(/^think;dur=[\d.]+;desc="ok";start=[\d.]+$/)
    expect((await rawCall(server.address, {})).serverTiming).toBeUndefined()
  })

  test('clamps to max, falls back to default, trusts whom it is told to, keeps a reserve and a floor', async () => {
    const seen: number[] = []
    await using server = await serve(
      {
        ask: (call: Handled, respond: Respond) => {
          seen.push(deadlineFromCall(call)!.budget)
          respond(null, 'yes')
        },
      },
      {
        default: 700,
        max: 3_000,
        floor: 100,
        reserve: 50,
        trust: ({ headers }) => ('x-ours' in headers ? 'ignore' : 'clamp'),
      },
    )
    await rawCall(server.address, { 'grpc-timeout': '1H' })
    await rawCall(server.address, {})
    await rawCall(server.address, { 'x-request-timeout-ms': '1000' })
    expect(seen).toEqual([3_000, 700, 950])
    const short = await rawCall(server.address, { 'x-request-timeout-ms': '120' })
    expect(short).toMatchObject({ status: 4, outcome: 'short_circuited' })
    expect(() => deadlineServerInterceptor({ default: 'soon' })).toThrow('default')
    expect(() => withDeadline(() => undefined, { onExceeded: 1 } as never)).toThrow('onExceeded')
  })

  test('what cannot be read is ignored, or answered with INVALID_ARGUMENT where that is asked for', async () => {
    const ask = (_: Handled, respond: Respond): void => respond(null, 'yes')
    await using lax = await serve({ ask })
    await using strict = await serve({ ask }, { malformed: 'reject' })
    expect((await rawCall(lax.address, { 'x-request-timeout-ms': '1e3' })).status).toBe(0)
    expect((await rawCall(strict.address, { 'x-request-timeout-ms': '1e3' })).status).toBe(
      status.INVALID_ARGUMENT,
    )
  })

  test('going down, it turns new calls away and lets running ones have the grace', async () => {
    const shutdown = new AbortController()
    await using server = await serve(
      { ask: (call: Handled, respond: Respond) => call.request === 'hang' || respond(null, 'yes') },
      { shutdownSignal: shutdown.signal, shutdownGrace: 100 },
    )
    using client = new TextsClient(server.address)
    await client.ask('?')
    const running = failureOf(client.ask('hang'))
    await sleep(50)
    shutdown.abort()
    expect(await failureOf(client.ask('?'))).toMatchObject({ code: status.UNAVAILABLE })
    expect(await running).toMatchObject({ code: status.UNAVAILABLE })
  })

  test('answers after a blocked event loop as late as they are', async () => {
    await using server = await serve({
      ask: (_: Handled, respond: Respond) => {
        const end = performance.now() + 200
        while (performance.now() < end);
        respond(null, 'late')
      },
    })
    expect(await rawCall(server.address, { 'grpc-timeout': '100m' })).toMatchObject({
      status: 4,
      outcome: 'deadline_exceeded',
    })
  })

  test('five hundred calls with an hour each leave no timer behind', async () => {
    await using server = await serve({ ask: (_: Handled, respond: Respond) => respond(null, 'yes') })
    using client = new TextsClient(server.address)
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    await client.ask('?', { deadline: Date.now() + 3_600_000 })
    const before = timers()
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        Array.from({ length: 100 }, () => client.ask('?', { deadline: Date.now() + 3_600_000 })),
      )
    }
    await expect.poll(timers).toBeLessThanOrEqual(before + 1)
  })

  test('a client that does not read holds no source back from its end', async () => {
    let written = 0
    const ended = deferred<unknown>()
    await using server = await serve(
      {
        list: async (call: ServerWritableStream<string, string>) => {
          const { signal } = deadlineFromCall(call)!
          signal.addEventListener('abort', () => ended.resolve(signal.reason))
          while (!signal.aborted) {
            written += 1
            if (!call.write('x'.repeat(1 << 20))) await Promise.race([once(call, 'drain'), ended.promise])
          }
        },
      },
      { default: 300 },
    )
    using client = new TextsClient(server.address)
    const call = client.list('?')
    call.on('error', () => undefined)
    expect(await ended.promise).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(written).toBeLessThan(100)
    call.cancel()
  })

  test('calls with an hour left that their clients leave keep no server from going down', async () => {
    await using server = await serve({ ask: () => undefined }, { default: '1h', max: '2h' })
    using client = new TextsClient(server.address)
    const cancels: Array<() => void> = []
    const failures = Array.from({ length: 10 }, () =>
      failureOf(client.ask('?', { onCall: (call) => cancels.push(() => call.cancel()) })),
    )
    await sleep(50)
    for (const cancel of cancels) cancel()
    await Promise.all(failures)
    client.close()
    const start = performance.now()
    await new Promise((resolve) => server.server.tryShutdown(resolve))
    expect(performance.now() - start).toBeLessThan(1_000)
  })
})

describe('the interceptor', () => {
  test.each(['600H', '720H', '99999999H', '2147484S'])(
    'gives %s its maximum, which grpc-js alone takes for past',
    async (timeout) => {
      const seen: Array<number | undefined> = []
      await using server = await grpcServer(
        {
          ask: (call: Handled, respond: Respond) => {
            seen.push(deadlineFromCall(call)?.budget)
            setTimeout(respond, 50, null, 'yes')
          },
        },
        [deadlineServerInterceptor({ max: '1h' })],
      )
      expect((await rawCall(server.address, { 'grpc-timeout': timeout })).status).toBe(0)
      expect(seen).toEqual([3_600_000])
    },
  )

  test('ends a call whose request never comes to its end', async () => {
    let entered = false
    await using server = await grpcServer({ ask: () => (entered = true) }, [
      deadlineServerInterceptor({ default: 150 }),
    ])
    using client = new TextsClient(server.address)
    const answer = deferred<unknown>()
    client.makeClientStreamRequest('/bench.Texts/Ask', Buffer.from, String, answer.resolve).write('begun')
    expect(await answer.promise).toMatchObject({ code: status.DEADLINE_EXCEEDED })
    expect(entered).toBe(false)
  })

  test('is tightened by withDeadline on a handler, and loosened by nothing', async () => {
    const seen: number[] = []
    const look = (call: Handled, respond: Respond): void => {
      seen.push(currentDeadline()!.budget)
      if (call.request !== 'hang') respond(null, 'yes')
    }
    await using tight = await grpcServer({ ask: withDeadline(look, { default: 200 }) }, [
      deadlineServerInterceptor(),
    ])
    await using loose = await grpcServer({ ask: withDeadline(look, { default: '1h', max: '2h' }) }, [
      deadlineServerInterceptor({ default: 1_000 }),
    ])
    await using plain = await grpcServer({ ask: withDeadline(look) }, [
      deadlineServerInterceptor({ default: '1m' }),
    ])
    for (const { address } of [tight, loose, plain]) expect((await rawCall(address, {})).status).toBe(0)
    expect(seen[0]).toBe(200)
    expect(seen[1]).toBeLessThanOrEqual(1_000)
    expect(seen[2]).toBe(60_000)
    using client = new TextsClient(tight.address)
    expect(await failureOf(client.ask('hang'))).toMatchObject({ code: status.DEADLINE_EXCEEDED })
  })
})

describe.each([
  { name: 'alone', interceptors: [] },
  { name: 'under the interceptor', interceptors: [deadlineServerInterceptor()] },
])('a handler under withDeadline, $name', ({ interceptors }) => {
  const tooSmall = new BudgetTooSmallError('not enough')

  test('may be async: what it rejects with is answered, our errors with their own status', async () => {
    await using server = await grpcServer(
      {
        ask: withDeadline(async (call: Handled, respond: Respond) => {
          await sleep(1)
          if (call.request === 'ours') throw tooSmall
          if (call.request === 'status')
            throw Object.assign(new Error('no'), { code: status.NOT_FOUND, details: 'none' })
          if (call.request === 'theirs') throw new Error('broken')
          if (call.request === 'callback') return respond(tooSmall as never)
          respond(null, 'yes')
        }),
      },
      interceptors,
    )
    using client = new TextsClient(server.address)
    expect(await client.ask('?')).toBe('yes')
    expect(await failureOf(client.ask('ours'))).toMatchObject({
      code: status.DEADLINE_EXCEEDED,
      details: 'not enough',
    })
    expect(await failureOf(client.ask('callback'))).toMatchObject({ code: status.DEADLINE_EXCEEDED })
    expect(await failureOf(client.ask('status'))).toMatchObject({ code: status.NOT_FOUND, details: 'none' })
    expect(await failureOf(client.ask('theirs'))).toMatchObject({ code: status.UNKNOWN, details: 'broken' })
    await expect.poll(outcomes).toEqual(['ok', 'short_circuited', 'short_circuited', 'ok', 'error'])
    expect(served.lateAnswers).toBe(0)
  })

  test.each([
    [
      'throws',
      () => {
        throw tooSmall
      },
    ],
    ['emits an error', (call: ServerWritableStream<string, string>) => call.emit('error', tooSmall)],
    ['is destroyed with an error', (call: ServerWritableStream<string, string>) => call.destroy(tooSmall)],
    [
      'rejects',
      async () => {
        throw tooSmall
      },
    ],
  ])('a stream that %s of ours ends with its status', async (_, fail) => {
    await using server = await grpcServer({ list: withDeadline(fail as never) as never }, interceptors)
    using client = new TextsClient(server.address)
    expect(await failureOf(client.list('?').toArray())).toMatchObject({ code: 4, details: 'not enough' })
    await expect.poll(outcomes).toEqual(['short_circuited'])
  })

  test('a failure after the end is a warning, unless it is the end itself', async () => {
    const warnings: string[] = []
    const note = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', note)
    await using server = await grpcServer(
      {
        ask: withDeadline(
          async (call: Handled) => {
            const { signal } = currentDeadline()!
            await once(signal, 'abort')
            await sleep(10)
            throw call.request === 'reason' ? signal.reason : new Error('broken late')
          },
          { default: 100 },
        ),
      },
      interceptors,
    )
    using client = new TextsClient(server.address)
    await Promise.all(['reason', 'other'].map((request) => failureOf(client.ask(request))))
    await expect
      .poll(() => warnings)
      .toEqual(['a handler failed after its call had been answered: Error: broken late'])
    process.off('warning', note)
  })
})
