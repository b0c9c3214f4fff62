import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { connectNodeAdapter, createConnectTransport } from '@connectrpc/connect-node'
import {
  type CallServerOptions,
  deadlineFromCall,
  deadlineInterceptor,
  deadlineServerInterceptor,
} from '@timebudget/clients/connect'
import {
  BudgetTooSmallError,
  ClientClosedError,
  currentDeadline,
  Deadline,
  detach,
  findTimeBudgetError,
  operation,
  runWithDeadline,
} from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import {
  connectServer,
  type Handlers,
  protocols,
  type Text,
  textOf,
  textsClient,
  textsService,
} from './support/connect-bench.ts'
import { deferred } from './support/deferred.ts'
import { servedCalls } from './support/served-calls.ts'
import { failureOf, under } from './support/under.ts'

const day = 86_400_000

const served = servedCalls()
const { outcomes } = served

async function endOf(call: Promise<unknown>) {
  const error = await failureOf(call)
  return { code: error instanceof ConnectError ? error.code : error, ours: findTimeBudgetError(error)?.code }
}

/** Takes so long that a deadline of 5 ms passes after the call has begun. */
function decideSlowly(): boolean {
  const end = performance.now() + 6
  while (performance.now() < end);
  return true
}

const yes: Handlers = { ask: () => ({ text: 'yes' }) }

/** Handlers of all four kinds that never come to an end, and heed no signal. */
function hanging(entered: (context: HandlerContext) => void = () => undefined): Handlers {
  const never = new Promise<never>(() => undefined)
  return {
    ask: (_: Text, context: HandlerContext) => (entered(context), never),
    collect: (_: unknown, context: HandlerContext) => (entered(context), never),
    async *list(_: Text, context: HandlerContext) {
      entered(context)
      yield textOf('begun')
      await never
    },
    async *chat(_: unknown, context: HandlerContext) {
      entered(context)
      yield textOf('begun')
      await never
    },
  }
}

const kinds = ['ask', 'collect', 'list', 'chat'] as const

function callOf(client: ReturnType<typeof textsClient>, kind: (typeof kinds)[number]): Promise<unknown> {
  return kind === 'ask' || kind === 'list' ? client[kind]('?') : client[kind](['?'])
}

describe.each(protocols)('a client of $name', ({ header, transport }) => {
  const client = (url: string, options = {}, settings = {}) =>
    textsClient(transport(url, { interceptors: [deadlineInterceptor(options)], ...settings }))

  test("sends what is left in the protocol's header and in both of ours, once, whole", async () => {
    await using server = await connectServer(yes)
    await under(4_000.5, () => client(server.url).ask('?', { headers: { 'x-request-timeout-ms': '99999' } }))
    const [sent] = server.requests
    expect(sent?.['x-request-deadline']).toMatch(/^\d{13}$/)
    expect(sent?.['x-request-timeout-ms']).toMatch(/^\d{4}$/)
    expect(sent?.[header]).toMatch(/^\d{1,8}[mun]?$/)
  })

  test('nothing is sent if time runs out between the decision to call and the call', async () => {
    await using server = await connectServer(yes)
    const { ask } = client(server.url, { propagateTo: decideSlowly })
    await ask('?')
    for (let call = 0; call < 10; call += 1) await under(5, () => failureOf(ask('?')))
    await ask('?')
    expect(server.requests).toHaveLength(2)
  })

  test('a deadline of 10.5 ms, and a timeoutMs of 2000.5, are read by a server that takes whole numbers', async () => {
    await using server = await connectServer(yes)
    const { ask } = client(server.url)
    await ask('?')
    await under(10.5, () => failureOf(ask('?')))
    expect(await ask('?', { timeoutMs: 2_000.5 })).toBe('yes')
    for (const sent of server.requests.slice(1)) expect(sent[header]).toMatch(/^[1-9]\d{0,9}[mun]?$/)
  })

  test.each([
    { name: 'of a call', ambient: 5_000, own: 300 },
    { name: 'of the request', ambient: 300, own: 5_000 },
  ])('the deadline $name counts where it is the tighter one', async ({ ambient, own }) => {
    await using server = await connectServer(yes)
    await under(ambient, () => client(server.url).ask('?', { timeoutMs: own }))
    expect(Number(server.requests[0]?.['x-request-timeout-ms'])).toBeLessThanOrEqual(300)
  })

  test('nothing is sent when nothing is left, whatever timeoutMs says', async () => {
    await using server = await connectServer(yes)
    const lax = client(server.url)
    for (const timeoutMs of [undefined, 0, -1, 5_000]) {
      const settings = timeoutMs === undefined ? {} : { timeoutMs }
      expect(await under(0, () => endOf(lax.ask('?', settings)))).toEqual({
        code: Code.DeadlineExceeded,
        ours: 'DEADLINE_EXCEEDED',
      })
    }
    expect(server.requests).toEqual([])
  })

  test.each([30 * day, 2 ** 31, 9_999_999_999, Number.MAX_SAFE_INTEGER, Infinity])(
    'a budget, and a timeoutMs, of %d ms is no past one',
    async (budget) => {
      await using server = await connectServer({ ask: () => sleep(50).then(() => ({ text: 'yes' })) })
      expect(await under(budget, () => client(server.url).ask('?'))).toBe('yes')
      expect(await client(server.url).ask('?', { timeoutMs: budget })).toBe('yes')
    },
  )

  test.each(['collect', 'chat'] as const)(
    'a stream of requests that hangs ends at the deadline: %s',
    async (kind) => {
      const closed = deferred<number>()
      await using server = await connectServer(
        hanging(({ signal }) => signal.addEventListener('abort', () => closed.resolve(performance.now()))),
      )
      const texts = client(server.url)
      await under(300, async (deadline) => {
        expect(await endOf(callOf(texts, kind))).toEqual({
          code: Code.DeadlineExceeded,
          ours: 'DEADLINE_EXCEEDED',
        })
        expect(deadline.elapsed()).toBeGreaterThanOrEqual(300)
        expect(deadline.elapsed()).toBeLessThan(1_000)
        expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['deadline_exceeded'])
      })
      const ended = performance.now()
      expect((await closed.promise) - ended).toBeLessThan(250)
    },
  )

  test('its own timeoutMs and the default of its transport are operation timeouts', async () => {
    await using server = await connectServer(hanging())
    await under(10_000, async (deadline) => {
      const ends = await Promise.all([
        endOf(client(server.url).ask('?', { timeoutMs: 150 })),
        endOf(client(server.url, {}, { defaultTimeoutMs: 150 }).ask('?')),
      ])
      for (const end of ends) expect(end).toEqual({ code: 4, ours: 'OPERATION_TIMEOUT' })
      expect(new Set(deadline.ledger.entries.map(({ outcome }) => outcome))).toEqual(
        new Set(['operation_timeout']),
      )
    })
  })

  test("the request's client leaving cancels, and so does the caller, each with its own reason", async () => {
    const entered: Array<() => void> = []
    const cancelled: unknown[] = []
    await using server = await connectServer(
      hanging(({ signal }) => {
        entered.shift()?.()
        signal.addEventListener('abort', () => cancelled.push(1))
      }),
    )
    const { ask } = client(server.url)
    await under(10_000, async (deadline) => {
      const first = deferred<undefined>()
      entered.push(() => first.resolve(undefined))
      const own = new AbortController()
      const stopped = failureOf(ask('?', { signal: own.signal }))
      await first.promise
      own.abort(new Error('mine'))
      expect(await stopped).toMatchObject({ code: Code.Canceled, cause: new Error('mine') })
      const second = deferred<undefined>()
      entered.push(() => second.resolve(undefined))
      const left = endOf(ask('?', { signal: new AbortController().signal }))
      await second.promise
      deadline.cancel(new ClientClosedError('left'))
      expect(await left).toEqual({ code: Code.Canceled, ours: 'CLIENT_CLOSED' })
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['cancelled', 'client_closed'])
    })
    await expect.poll(() => cancelled.length).toBe(2)
  })

  test('a caller that aborts after the deadline changes nothing', async () => {
    await using server = await connectServer(hanging())
    const own = new AbortController()
    const end = await under(150, () => endOf(client(server.url).ask('?', { signal: own.signal })))
    own.abort()
    expect(end).toEqual({ code: Code.DeadlineExceeded, ours: 'DEADLINE_EXCEEDED' })
  })

  test('how a peer failed: asked for something else, broken, out of the time that it was given', async () => {
    await using server = await connectServer({
      ask: ({ text }: Text) => {
        throw new ConnectError('no', Number(text))
      },
    })
    const asks = [Code.NotFound, Code.Internal, Code.Canceled, Code.DeadlineExceeded]
    await under(10_000, async (deadline) => {
      for (const code of asks)
        expect(await failureOf(client(server.url).ask(String(code)))).toMatchObject({ code })
      await failureOf(client(server.url, { timeout: 5_000 }).ask(String(Code.DeadlineExceeded)))
      const seen = deadline.ledger.entries.map(({ outcome }) => outcome)
      expect(seen).toEqual([
        'ok',
        'upstream_error',
        'upstream_error',
        'deadline_exceeded',
        'operation_timeout',
      ])
    })
  })

  test('a peer that gives up at our deadline, in whichever way, is our deadline: 200 times', async () => {
    await using server = await connectServer({
      ask: async ({ text }: Text, { requestHeader }: HandlerContext) => {
        const [code, after = 0] = text.split(' ').map(Number)
        const left = Number(requestHeader.get('x-request-deadline')) - Date.now()
        await sleep(Math.max(0, left + after))
        throw new ConnectError('gave up', code)
      },
    })
    const ways = [Code.DeadlineExceeded, Code.Canceled, Code.Unavailable, Code.Internal]
    const { ask } = client(server.url)
    await failureOf(ask('5 0'))
    const ends = await Promise.all(
      Array.from({ length: 200 }, (_, run) =>
        under(500, () => endOf(ask(`${ways[run % 4]} ${(run % 26) - 20}`))),
      ),
    )
    expect(new Set(ends.map(({ code, ours }) => `${String(code)} ${ours}`))).toEqual(
      new Set(['4 DEADLINE_EXCEEDED']),
    )
  })

  test("hosts that are to get no header of ours get the protocol's own", async () => {
    await using server = await connectServer(yes)
    await under(5_000, () => client(server.url, { propagateTo: false }).ask('?'))
    expect(server.requests[0]).not.toHaveProperty('x-request-deadline')
    expect(server.requests[0]).toHaveProperty(header)
  })

  test('one client serves requests for longer than the budget of any, each with its own', async () => {
    await using server = await connectServer(yes)
    const { ask } = client(server.url)
    for (let request = 0; request < 3; request += 1) {
      expect(await under(200, () => ask('?'))).toBe('yes')
      await sleep(200)
    }
  })
})

describe.each(protocols)('a server of $name', ({ header, transport }) => {
  const serve = (handlers: Handlers, options?: CallServerOptions) =>
    connectServer(handlers, [deadlineServerInterceptor(options)])
  const client = (url: string) => textsClient(transport(url))
  const spent = header === 'grpc-timeout' ? '0m' : '0'
  const thirtyDays = header === 'grpc-timeout' ? '720H' : String(30 * day)

  test('runs handlers of all four kinds inside the deadline of the caller', async () => {
    const seen: number[] = []
    const look = (context: HandlerContext): void => {
      expect(currentDeadline()).toBe(deadlineFromCall(context))
      seen.push(currentDeadline()!.budget)
    }
    await using server = await serve({
      ask: ({ text }: Text, context: HandlerContext) => {
        look(context)
        return { text: `${text}!` }
      },
      collect: async (parts: AsyncIterable<Text>, context: HandlerContext) => {
        let all = ''
        for await (const { text } of parts) all += text
        look(context)
        return { text: all }
      },
      async *list({ text }: Text, context: HandlerContext) {
        for (const part of text) {
          look(context)
          yield textOf(part)
        }
      },
      async *chat(parts: AsyncIterable<Text>, context: HandlerContext) {
        for await (const { text } of parts) {
          look(context)
          yield textOf(text.toUpperCase())
        }
      },
    })
    const settings = { timeoutMs: 4_000 }
    expect(await client(server.url).ask('hi', settings)).toBe('hi!')
    expect(await client(server.url).collect(['a', 'b'], settings)).toBe('ab')
    expect(await client(server.url).list('abc', settings)).toEqual(['a', 'b', 'c'])
    expect(await client(server.url).chat(['x', 'y'], settings)).toEqual(['X', 'Y'])
    expect(seen).toEqual(Array.from({ length: 7 }, () => 4_000))
    expect(outcomes()).toEqual(['ok', 'ok', 'ok', 'ok'])
  })

  test('lets no call whose deadline has passed reach its handler', async () => {
    let entered = 0
    await using server = await serve(hanging(() => (entered += 1)))
    for (const headers of [{ [header]: spent }, { 'x-request-timeout-ms': '0' }]) {
      for (const call of [
        client(server.url).ask('?', { headers }),
        client(server.url).list('?', { headers }),
      ]) {
        const error = (await failureOf(call)) as ConnectError
        expect(error.code).toBe(Code.DeadlineExceeded)
        expect(error.metadata.get('x-deadline-outcome')).toBe('deadline_exceeded')
      }
    }
    expect(entered).toBe(0)
  })

  test.each(kinds)('answers deadline_exceeded at the deadline although %s hangs', async (kind) => {
    let signal: AbortSignal | undefined
    await using server = await serve(
      hanging((context) => (signal = context.signal)),
      { default: 200 },
    )
    const start = performance.now()
    const error = (await failureOf(callOf(client(server.url), kind))) as ConnectError
    expect(performance.now() - start).toBeLessThan(1_000)
    expect(error).toMatchObject({ code: Code.DeadlineExceeded })
    expect(error.metadata.get('x-deadline-outcome')).toBe('deadline_exceeded')
    expect(signal?.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(outcomes()).toEqual(['deadline_exceeded'])
  })

  test('a client that gives up a moment before the deadline it sent is waited out: the deadline ends the call', async () => {
    const clock = new ManualClock()
    const entered = deferred<AbortSignal>()
    const ask = (_: Text, { signal }: HandlerContext): Promise<never> => {
      entered.resolve(signal)
      return new Promise(() => undefined)
    }
    await using server = await serve({ ask }, { clock })
    const left = once(server.server, 'stream').then(([stream]) => once(stream, 'close'))
    const caller = new AbortController()
    const headers = { 'x-request-timeout-ms': '1000' }
    const answer = failureOf(client(server.url).ask('?', { headers, signal: caller.signal }))
    const signal = await entered.promise
    clock.advance(980)
    caller.abort()
    await left
    await sleep(20) // Connect tells of it a little later, and nobody but us
    expect([signal.aborted, outcomes()]).toEqual([false, []])
    clock.advance(20)
    expect(signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(outcomes()).toEqual(['deadline_exceeded'])
    expect(await answer).toMatchObject({ code: Code.Canceled })
  })

  test('an answer that comes late is dropped and counted, from a blocked event loop too', async () => {
    const done = deferred<undefined>()
    await using server = await serve({
      ask: async ({ text }: Text) => {
        if (text === 'block') {
          const end = performance.now() + 200
          while (performance.now() < end);
        } else await sleep(200).finally(() => setTimeout(done.resolve, 10, undefined))
        return { text: 'late' }
      },
    })
    const { ask } = client(server.url)
    expect(await failureOf(ask('sleep', { headers: { 'x-request-timeout-ms': '100' } }))).toMatchObject({
      code: 4,
    })
    await done.promise
    expect(served.lateAnswers).toBe(1)
    expect(await failureOf(ask('block', { headers: { 'x-request-timeout-ms': '100' } }))).toMatchObject({
      code: 4,
    })
    expect(outcomes()).toEqual(['deadline_exceeded', 'deadline_exceeded'])
  })

  test('never aborts the signal because the work went well, nor ends what has been detached', async () => {
    const signals: AbortSignal[] = []
    const background = deferred<unknown>()
    await using server = await serve({
      ask: (_: Text, { signal }: HandlerContext) => {
        signals.push(signal)
        detach(() => void sleep(50).then(() => background.resolve(currentDeadline())))
        return { text: 'yes' }
      },
      async *list(_: Text, { signal }: HandlerContext) {
        signals.push(signal)
        yield textOf('yes')
      },
    })
    await client(server.url).ask('?', { timeoutMs: 150 })
    await client(server.url).list('?', { timeoutMs: 150 })
    expect(await background.promise).toBeUndefined()
    await sleep(200)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
    expect(outcomes()).toEqual(['ok', 'ok'])
  })

  test.each([
    thirtyDays,
    header === 'grpc-timeout' ? '99999999H' : '9999999999',
    header === 'grpc-timeout' ? '2147484S' : '2147483648',
  ])('%s is clamped to max, and passes in no millisecond', async (timeout) => {
    const budgets: number[] = []
    await using server = await serve(
      {
        ask: async (_: Text, context: HandlerContext) => {
          budgets.push(deadlineFromCall(context)!.budget)
          await sleep(50)
          return { text: context.signal.aborted ? 'aborted' : 'yes' }
        },
      },
      { max: '1h' },
    )
    expect(await client(server.url).ask('?', { headers: { [header]: timeout } })).toBe('yes')
    expect(budgets).toEqual([3_600_000])
  })

  test.each(['ask', 'list'] as const)('a client that leaves %s is gone: once', async (kind) => {
    const entered = deferred<AbortSignal>()
    await using server = await serve(hanging(({ signal }) => entered.resolve(signal)))
    const own = new AbortController()
    const call = failureOf(client(server.url)[kind]('?', { signal: own.signal }))
    const signal = await entered.promise
    own.abort()
    if (!signal.aborted) await once(signal, 'abort')
    expect(signal.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
    await call
    expect(outcomes()).toEqual(['client_closed'])
  })

  test('errors of ours that a handler lets through have their own code, others stay what they are', async () => {
    await using server = await serve({
      ask: async ({ text }: Text) => {
        if (text === 'ours') throw new BudgetTooSmallError('not enough')
        if (text === 'connect') throw new ConnectError('none', Code.NotFound)
        throw new Error('secret')
      },
    })
    const { ask } = client(server.url)
    const ours = (await failureOf(ask('ours'))) as ConnectError
    expect(ours).toMatchObject({ code: Code.DeadlineExceeded, rawMessage: 'not enough' })
    expect(ours.metadata.get('x-deadline-outcome')).toBe('short_circuited')
    expect(await failureOf(ask('connect'))).toMatchObject({ code: Code.NotFound })
    expect(await failureOf(ask('?'))).toMatchObject({ code: Code.Internal, rawMessage: 'internal error' })
    expect(outcomes()).toEqual(['short_circuited', 'ok', 'error'])
  })

  test('a hop sends on the absolute deadline it received, and reports its part to the one before', async () => {
    // so long may a busy machine take to open a connection
    const options = { skewTolerance: '4s' }
    const think = () => operation('think', {}, () => sleep(5).then(() => ({ text: 'yes' })))
    await using last = await serve({ ask: think }, options)
    const toLast = textsClient(
      transport(last.url, { interceptors: [deadlineInterceptor({ operation: 'last' })] }),
    )
    await using middle = await serve(
      {
        ask: async () => ({ text: await toLast.ask('?') }),
        async *list() {
          yield textOf(await toLast.ask('?'))
        },
      },
      options,
    )
    const toMiddle = textsClient(
      transport(middle.url, { interceptors: [deadlineInterceptor({ operation: 'middle' })] }),
    )
    const deadline = Deadline.after(5_000)
    expect(await runWithDeadline(deadline, () => toMiddle.ask('?'))).toBe('yes')
    expect(await runWithDeadline(deadline, () => toMiddle.list('?'))).toEqual(['yes'])
    for (const [index, { 'x-request-deadline': sent }] of last.requests.entries()) {
      const received = Number(middle.requests[index]?.['x-request-deadline'])
      // earlier where the process was stopped between the readings of its two clocks, never later
      expect(Number(sent)).toBeLessThanOrEqual(received)
      expect(Number(sent)).toBeGreaterThan(received - 50)
    }
    const parts = ['middle', 'middle.last', 'middle.last.think']
    expect(deadline.ledger.entries.map(({ path }) => path)).toEqual([...parts, ...parts])
  })
})

test('within a server that keeps a deadline already, a call stands under that one', async () => {
  const seen: boolean[] = []
  const handle = connectNodeAdapter({
    routes: (router) =>
      void router.service(textsService, {
        ask: ({ text }: Text, context: HandlerContext) => {
          seen.push(deadlineFromCall(context) === currentDeadline(), currentDeadline()!.budget <= 300)
          return text === 'hang' ? new Promise(() => undefined) : { text: 'yes' }
        },
      } as never),
    interceptors: [deadlineServerInterceptor({ default: '1h', max: '1h' })],
  })
  const server = createServer(withDeadline(handle, { default: 300 }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: '1.1' })
  const { ask } = textsClient(transport)
  expect(await ask('?')).toBe('yes')
  const error = (await failureOf(ask('hang'))) as ConnectError
  expect(error.metadata.get('x-deadline-outcome')).toBe('deadline_exceeded')
  expect(seen).toEqual([true, true, true, true])
  expect(outcomes()).toEqual(['ok', 'deadline_exceeded'])
  server.closeAllConnections()
  server.close()
})
