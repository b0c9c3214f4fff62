import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ClientReadableStream,
  InterceptingCall,
  type Interceptor,
  Metadata,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js'
import {
  type CallServerOptions,
  deadlineInterceptor,
  deadlineServerInterceptor,
} from '@timebudget/clients/grpc'
import { ClientClosedError, currentDeadline, findTimeBudgetError, operation } from '@timebudget/core'
import { describe, expect, test } from 'vitest'
import { grpcServer, type Handled, type Respond, TextsClient } from './support/grpc-bench.ts'
import { failureOf, under } from './support/under.ts'

const day = 86_400_000

/** A server of grpc-js alone that notes the metadata and the deadline of each call. */
async function notingServer(
  answer: (call: Handled, respond: Respond) => void = (_, respond) => respond(null, 'yes'),
) {
  const calls: Array<{ headers: Record<string, unknown>; left: number }> = []
  const server = await grpcServer({
    ask: (call: Handled, respond: Respond) => {
      calls.push({ headers: call.metadata.getMap(), left: Number(call.getDeadline()) - Date.now() })
      answer(call, respond)
    },
  })
  return { ...server, calls, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

/** What a call that timebudget ended failed with. */
async function endOf(call: Promise<unknown>) {
  const error = (await failureOf(call)) as { code?: number }
  return { code: error.code, ours: findTimeBudgetError(error)?.code }
}

describe('what is sent', () => {
  test('what is left goes out as grpc-timeout and in both headers of ours, once, in whole milliseconds', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    const metadata = new Metadata()
    metadata.set('x-request-timeout-ms', '99999')
    await under(5_000.5, () => client.ask('?', { metadata }))
    const { headers, left } = server.calls[0]!
    expect(headers['x-request-deadline']).toMatch(/^\d{13}$/)
    expect(headers['x-request-timeout-ms']).toMatch(/^\d{4}$/)
    expect(Number(headers['x-request-timeout-ms'])).toBeLessThanOrEqual(5_001)
    expect(left).toBeLessThanOrEqual(5_002)
    expect(left).toBeGreaterThan(0)
    expect(metadata.get('x-request-timeout-ms')).toEqual(['99999'])
  })

  test('a hop sends on the absolute deadline that it received', async () => {
    await using last = await notingServer()
    using toLast = new TextsClient(last.address, [deadlineInterceptor()])
    const received: number[] = []
    await using middle = await grpcServer(
      {
        ask: (call: Handled, respond: Respond) => {
          received.push(Number(call.metadata.get('x-request-deadline')[0]))
          void toLast.ask(call.request).then((answer) => respond(null, answer), respond)
        },
      },
      [deadlineServerInterceptor({ skewTolerance: '4s' })],
    )
    using client = new TextsClient(middle.address, [deadlineInterceptor()])
    expect(await under(5_000, () => client.ask('?'))).toBe('yes')
    const sent = Number(last.calls[0]?.headers['x-request-deadline'])
    // earlier where the process was stopped between the readings of its two clocks, never later
    expect(sent).toBeLessThanOrEqual(received[0]!)
    expect(sent).toBeGreaterThan(received[0]! - 50)
  })

  test.each([
    { name: 'of a call', ambient: 5_000, own: 300, least: 300 },
    { name: 'of the request', ambient: 300, own: 5_000, least: 300 },
  ])('the deadline $name counts where it is the tighter one', async ({ ambient, own, least }) => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(ambient, () => client.ask('?', { deadline: new Date(Date.now() + own) }))
    expect(Number(server.calls[0]?.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(least)
    expect(server.calls[0]?.left).toBeLessThanOrEqual(least + 2)
  })

  test('a call with a deadline of its own, and a client with a timeout, are bounded and say so outside requests too', async () => {
    await using server = await notingServer(
      (call, respond) => call.request === 'hang' || respond(null, 'yes'),
    )
    using client = new TextsClient(server.address, [deadlineInterceptor({ timeout: 250 })])
    expect(await endOf(client.ask('hang'))).toEqual({
      code: status.DEADLINE_EXCEEDED,
      ours: 'OPERATION_TIMEOUT',
    })
    await client.ask('?', { deadline: Date.now() + 200 })
    expect(Number(server.calls[0]?.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(250)
    expect(Number(server.calls[1]?.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(200)
  })

  test('without a deadline a call is as it is without us', async () => {
    await using server = await notingServer((_, respond) =>
      respond({ code: status.NOT_FOUND, details: 'no' }),
    )
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    expect(await failureOf(client.ask('?'))).toMatchObject({ code: status.NOT_FOUND, details: 'no' })
    expect(Object.keys(server.calls[0]!.headers).filter((name) => name.startsWith('x-'))).toEqual([])
    expect(server.calls[0]?.left).toBe(Infinity)
  })

  test('hosts that propagateTo leaves out get grpc-timeout, which is gRPC itself, and nothing of ours', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor({ propagateTo: ['*.internal'] })])
    await under(5_000, () => client.ask('?'))
    expect(server.calls[0]?.headers).not.toHaveProperty('x-request-deadline')
    expect(server.calls[0]?.left).toBeLessThanOrEqual(5_002)
    using other = new TextsClient(server.address, [deadlineInterceptor({ propagateTo: [server.address] })])
    await under(5_000, () => other.ask('?'))
    expect(server.calls[1]?.headers).toHaveProperty('x-request-deadline')
  })

  test('each attempt of grpc-js goes out with what is left by then', async () => {
    await using server = await notingServer((_, respond) => {
      if (server.calls.length === 1)
        setTimeout(() => respond({ code: status.UNAVAILABLE, details: 'later' }), 100)
      else respond(null, 'yes')
    })
    const retryPolicy = {
      maxAttempts: 3,
      initialBackoff: '0.1s',
      maxBackoff: '0.1s',
      backoffMultiplier: 1,
      retryableStatusCodes: ['UNAVAILABLE'],
    }
    using client = new TextsClient(server.address, [deadlineInterceptor()], {
      'grpc.service_config': JSON.stringify({
        methodConfig: [{ name: [{ service: 'bench.Texts' }], retryPolicy }],
      }),
    })
    expect(await under(5_000, () => client.ask('?'))).toBe('yes')
    const [first, second] = server.calls.map(({ headers }) => Number(headers['x-request-timeout-ms']))
    expect(second).toBeLessThanOrEqual(first! - 100)
  })

  test('one client serves requests for longer than the budget of any, each with its own', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    for (let request = 0; request < 3; request += 1) {
      expect(await under(250, () => client.ask('?'))).toBe('yes')
      await sleep(250)
    }
  })

  test.each([30 * day, 60 * day, Number.MAX_SAFE_INTEGER, Infinity])(
    'a budget of %d ms is no past one',
    async (budget) => {
      await using server = await notingServer((_, respond) => setTimeout(() => respond(null, 'yes'), 50))
      using client = new TextsClient(server.address, [deadlineInterceptor()])
      expect(await under(budget, () => client.ask('?'))).toBe('yes')
    },
  )

  test('a deadline that grpc-js could not write takes no process down', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await client.ask('?')
    expect(await client.ask('?', { deadline: 1e18 })).toBe('yes')
    for (const deadline of [Number.NaN, '5000' as unknown as number, new Date('soon')]) {
      await expect(client.ask('?', { deadline })).rejects.toThrow(
        new TypeError('deadline: expected Unix epoch milliseconds or a valid Date'),
      )
    }
  })
})

describe('nothing is sent', () => {
  test('with a deadline that has passed, or with one of the call in the past', async () => {
    await using server = await notingServer()
    using lax = new TextsClient(server.address, [deadlineInterceptor()])
    expect(await under(0, () => endOf(lax.ask('?')))).toEqual({ code: 4, ours: 'DEADLINE_EXCEEDED' })
    expect(await endOf(lax.ask('?', { deadline: new Date(1) }))).toEqual({
      code: 4,
      ours: 'OPERATION_TIMEOUT',
    })
    expect(await endOf(lax.ask('?', { deadline: -Infinity }))).toEqual({ code: 4, ours: 'OPERATION_TIMEOUT' })
    expect(await lax.ask('?')).toBe('yes')
    expect(server.calls).toHaveLength(1)
  })

  test('if time runs out between the decision to call and the call', async () => {
    await using server = await notingServer()
    const decideSlowly = (): boolean => {
      const end = performance.now() + 6
      while (performance.now() < end);
      return true
    }
    using client = new TextsClient(server.address, [deadlineInterceptor({ propagateTo: decideSlowly })])
    await client.ask('?')
    for (let call = 0; call < 10; call += 1) {
      expect(await under(5, () => endOf(client.ask('?')))).toEqual({ code: 4, ours: 'DEADLINE_EXCEEDED' })
    }
    await client.ask('?')
    expect(server.calls).toHaveLength(2)
  })

  test('streams that are refused fail as streams', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor({ floor: 500 })])
    await under(300, async () => {
      const [listError] = await once(client.list('?'), 'error').catch((error: unknown) => [error])
      expect(findTimeBudgetError(listError)?.code).toBe('BUDGET_TOO_SMALL')
      const chat = client.chat()
      chat.write('?')
      const [chatError] = await once(chat, 'error').catch((error: unknown) => [error])
      expect(findTimeBudgetError(chatError)?.code).toBe('BUDGET_TOO_SMALL')
      const { call, answer } = client.collect()
      call.write('?')
      expect(await endOf(answer)).toEqual({ code: 4, ours: 'BUDGET_TOO_SMALL' })
    })
  })
})

/** A server that answers nothing and tells when a call has been cancelled. */
async function hangingServer() {
  const cancelled: number[] = []
  let noteArrival: () => void = () => undefined
  const arrived = new Promise<void>((resolve) => (noteArrival = resolve))
  const hang = (call: Handled): void => {
    noteArrival()
    call.on('cancelled', () => cancelled.push(performance.now()))
  }
  const list = (call: ServerWritableStream<string, string>): void => {
    call.write('begun')
    hang(call)
  }
  const server = await grpcServer({ ask: hang, collect: hang, list, chat: hang })
  return { ...server, cancelled, arrived }
}

type Kind = 'collect' | 'chat'

/** Makes a call that hangs; its failure. */
async function hangingCall(client: TextsClient, kind: Kind): Promise<unknown> {
  if (kind === 'collect') {
    const { call, answer } = client.collect()
    call.write('?')
    return failureOf(answer)
  }
  const call = client.chat()
  call.write('?')
  return failureOfStream(call)
}

async function failureOfStream(call: ClientReadableStream<string>): Promise<unknown> {
  call.resume()
  const [error] = await new Promise<unknown[]>((resolve) => call.once('error', (...args) => resolve(args)))
  return error
}

describe.each<Kind>(['collect', 'chat'])('a stream of requests that hangs: %s', (kind) => {
  test('ends at the deadline with our error as the cause, its stream with it', async () => {
    await using server = await hangingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await new Promise((resolve) => client.waitForReady(Date.now() + 5_000, resolve))
    await under(300, async (deadline) => {
      const error = await hangingCall(client, kind)
      expect(error).toMatchObject({ code: status.DEADLINE_EXCEEDED, cause: deadline.reason })
      expect(deadline.reason?.code).toBe('DEADLINE_EXCEEDED')
      expect(deadline.elapsed()).toBeGreaterThanOrEqual(300)
      expect(deadline.elapsed()).toBeLessThan(1_000)
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['deadline_exceeded'])
    })
    const ended = performance.now()
    await expect.poll(() => server.cancelled.length).toBe(1)
    expect(server.cancelled[0]! - ended).toBeLessThan(250)
  })

  test('is cancelled when the client of the request leaves', async () => {
    await using server = await hangingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(10_000, async (deadline) => {
      const failure = hangingCall(client, kind)
      await server.arrived
      const left = new ClientClosedError('left')
      deadline.cancel(left)
      expect(await failure).toMatchObject({ code: status.CANCELLED, cause: left })
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['client_closed'])
    })
    await expect.poll(() => server.cancelled.length).toBe(1)
  })
})

test('interceptors that hold a call back, on either side, hold back no end', async () => {
  await using server = await notingServer()
  const holding: Interceptor = (options, next) =>
    new InterceptingCall(next(options), {
      start: (...[metadata, listener, start]) => setTimeout(start, 300, metadata, listener),
    })
  for (const interceptors of [
    [holding, deadlineInterceptor()],
    [deadlineInterceptor(), holding],
  ]) {
    using client = new TextsClient(server.address, interceptors)
    expect(await under(150, () => endOf(client.ask('?')))).toEqual({ code: 4, ours: 'DEADLINE_EXCEEDED' })
  }
  expect(server.calls).toEqual([])
})

describe('how a call ends', () => {
  test('the caller who cancels gets CANCELLED, and the ledger says so', async () => {
    await using server = await hangingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(10_000, async (deadline) => {
      let cancel: () => void = () => undefined
      const failure = failureOf(client.ask('?', { onCall: (call) => (cancel = () => call.cancel()) }))
      await server.arrived
      cancel()
      expect(await failure).toMatchObject({ code: status.CANCELLED, details: 'Cancelled on client' })
      expect(deadline.ledger.entries[0]?.outcome).toBe('cancelled')
    })
  })

  test('an answer that asks for something else is no failure of the peer, a broken peer is', async () => {
    const codes = [
      status.NOT_FOUND,
      status.RESOURCE_EXHAUSTED,
      status.INTERNAL,
      status.UNAVAILABLE,
      status.CANCELLED,
    ]
    await using server = await notingServer((call, respond) =>
      respond({ code: Number(call.request), details: 'no' }),
    )
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(10_000, async (deadline) => {
      for (const code of codes)
        expect(await failureOf(client.ask(String(code)))).toMatchObject({ code, details: 'no' })
      const outcomes = deadline.ledger.entries.map(({ outcome }) => outcome)
      expect(outcomes).toEqual(['ok', 'ok', 'upstream_error', 'upstream_error', 'upstream_error'])
    })
  })

  test('a peer that gives up with time left passes its status on: ours to it where it had a shorter time', async () => {
    const trailers = new Metadata()
    trailers.set('x-deadline-outcome', 'short_circuited')
    await using server = await notingServer((call, respond) => {
      const metadata = call.request === 'short' ? trailers : undefined
      respond({ code: status.DEADLINE_EXCEEDED, details: 'no time', ...(metadata && { metadata }) })
    })
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    using timed = new TextsClient(server.address, [deadlineInterceptor({ timeout: 2_000 })])
    await under(10_000, async (deadline) => {
      expect(await failureOf(client.ask('?'))).toMatchObject({ code: 4, details: 'no time' })
      await failureOf(timed.ask('?'))
      await failureOf(client.ask('short'))
      const outcomes = deadline.ledger.entries.map(({ outcome }) => outcome)
      expect(outcomes).toEqual(['deadline_exceeded', 'operation_timeout', 'short_circuited'])
    })
  })

  test('a peer that gives up at our deadline, in whichever way, is our deadline: 200 times', async () => {
    const ways = [status.DEADLINE_EXCEEDED, status.CANCELLED, status.UNAVAILABLE, status.INTERNAL]
    await using server = await grpcServer({
      ask: (call: Handled, respond: Respond) => {
        const [code = 0, after = 0] = call.request.split(' ').map(Number)
        const left = Number(call.metadata.get('x-request-deadline')[0]) - Date.now()
        setTimeout(() => respond({ code, details: 'gave up' }), left + after)
      },
    })
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(50, () => failureOf(client.ask('5 0')))
    // in waves, or the calls would be made too slowly for any to end before its deadline
    for (let wave = 0; wave < 10; wave += 1) {
      const ends = await Promise.all(
        Array.from({ length: 20 }, (_, run) =>
          under(200, () => endOf(client.ask(`${ways[run % 4]} ${((wave + run) % 26) - 20}`))),
        ),
      )
      for (const end of ends) expect(end).toEqual({ code: 4, ours: 'DEADLINE_EXCEEDED' })
    }
  })

  test('what the peer did with its time comes into the ledger, a stranger is not believed', async () => {
    await using server = await grpcServer(
      {
        ask: (_: Handled, respond: Respond) =>
          void operation('think', {}, () => sleep(5)).then(() => respond(null, 'yes'), respond),
      },
      [deadlineServerInterceptor()],
    )
    using client = new TextsClient(server.address, [
      deadlineInterceptor({ operation: ({ path }) => path.slice(13) }),
    ])
    using wary = new TextsClient(server.address, [deadlineInterceptor({ trust: false })])
    await under(5_000, async (deadline) => {
      await client.ask('?')
      await wary.ask('?')
      const entries = deadline.ledger.entries.map(({ path, source, outcome }) => ({ path, source, outcome }))
      expect(entries).toEqual([
        { path: 'Ask', source: 'local', outcome: 'ok' },
        { path: 'Ask.think', source: 'peer', outcome: 'ok' },
        { path: 'grpc', source: 'local', outcome: 'ok' },
      ])
    })
  })
})

describe('what is left behind', () => {
  test('requests that wait for one connection are called back under their own deadlines', async () => {
    await using server = await notingServer()
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    const seen = await Promise.all(
      [60_000, 5_000].map((budget) =>
        under(
          budget,
          (deadline) =>
            new Promise((resolve) => {
              client.makeUnaryRequest('/bench.Texts/Ask', Buffer.from, String, '?', () =>
                resolve(currentDeadline() === deadline),
              )
            }),
        ),
      ),
    )
    expect(seen).toEqual([true, true])
    const sent = server.calls
      .map(({ headers }) => Number(headers['x-request-timeout-ms']))
      .toSorted((a, b) => a - b)
    expect(sent[0]).toBeLessThanOrEqual(5_000)
    expect(sent[1]).toBeGreaterThan(50_000)
  })

  test("a parent that is under a deadline of ours gives it, and gets no listener of grpc-js's", async () => {
    const options: CallServerOptions = { ambient: false }
    await using last = await notingServer()
    using toLast = new TextsClient(last.address, [deadlineInterceptor()])
    let listeners = -1
    await using server = await grpcServer(
      {
        ask: async (call: Handled, respond: Respond) => {
          const parent = call as never
          const before = call.listenerCount('cancelled')
          await Promise.all(Array.from({ length: 20 }, () => toLast.ask('?', { parent })))
          listeners = call.listenerCount('cancelled') - before
          respond(null, 'yes')
        },
      },
      [deadlineServerInterceptor(options)],
    )
    using client = new TextsClient(server.address, [deadlineInterceptor()])
    await under(5_000, () => client.ask('?'))
    expect(listeners).toBe(0)
    expect(Number(last.calls[0]?.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(5_000)
  })
})
