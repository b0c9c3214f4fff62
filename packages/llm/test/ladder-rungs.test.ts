import { Deadline, UpstreamError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import {
  cached,
  CostMeter,
  currentCallSettings,
  ladder,
  model,
  type ModelEvent,
  type Rung,
  rule,
  type StoredAnswer,
  type Token,
  withCallSettings,
} from '@timebudget/llm'
import { breaker } from '@timebudget/resilience'
import { describe, expect, test } from 'vitest'
import { callOf } from './support/calls.ts'

async function* events(...given: (ModelEvent | Error)[]): AsyncGenerator<ModelEvent> {
  for (const event of given) {
    if (event instanceof Error) throw event
    yield event
  }
}

const text = (piece: string): ModelEvent => ({ type: 'text', text: piece })
const toolCall: ModelEvent = { type: 'tool', index: 0, id: 'a', name: 'refund', arguments: '{"order"' }
const sorry = rule<string>(() => 'sorry')
const once = { attempts: 1, breaker: null } as const

async function piecesOf(rungs: readonly Rung<string>[]): Promise<readonly Token[]> {
  const pieces: Token[] = []
  for await (const piece of ladder(rungs).stream('why?')) pieces.push(piece)
  return pieces
}

/** A cache, and what is in it. */
function cacheOf(): {
  readonly stored: Map<string, StoredAnswer>
  readonly rung: Rung<string>
} {
  const stored = new Map<string, StoredAnswer>()
  const cache = {
    get: async ({ key }: { readonly key: string }) => stored.get(key),
    set: async ({ key, value }: { readonly key: string; readonly value: StoredAnswer }) =>
      stored.set(key, value),
  }
  return { stored, rung: cached(cache, { key: (question) => question }) }
}

async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}

describe('what a model says', () => {
  test('may be the whole text at once', async () => {
    expect(await ladder([model<string>('big', async () => 'yes')]).run('why?')).toMatchObject({
      text: 'yes',
      complete: true,
    })
  })

  test.each<{ readonly what: string; readonly ask: () => Promise<AsyncIterable<ModelEvent> | string> }>([
    { what: 'an empty text', ask: async () => '' },
    { what: 'an end and nothing else', ask: async () => events({ type: 'finish', reason: 'stop' }) },
    { what: 'nothing at all', ask: async () => events() },
    { what: 'thoughts alone', ask: async () => events({ type: 'reasoning', text: 'hm' }) },
  ])('is no answer if it is $what: the next rung has its turn', async ({ ask }) => {
    const answer = await ladder([model<string>('big', ask, once), sorry]).run('why?')
    expect(answer).toMatchObject({ text: 'sorry', degraded: true, reason: 'upstream_error' })
  })

  test('may be the call of a tool and no text', async () => {
    const pieces = await piecesOf([model<string>('big', () => events(toolCall), once), sorry])
    expect(pieces).toMatchObject([{ type: 'tool', tool: { name: 'refund' }, rung: 'big' }])
  })

  test('is not called for twice: half a tool call that was seen is not begun again by another rung', async () => {
    const big = model<string>('big', () => events(toolCall, new UpstreamError('reset')), once)
    const small = model<string>('small', () => events(toolCall), once)
    const stream = ladder([big, small]).stream('why?')
    const pieces: Token[] = []
    for await (const piece of stream) pieces.push(piece)
    expect(pieces.map(({ rung }) => rung)).toEqual(['big'])
    expect(await stream.answer).toMatchObject({ complete: false, reason: 'upstream_error', rung: 'big' })
  })
})

describe('a rung', () => {
  test('whose function throws before it has called anything is a failure like any other', async () => {
    const broken = model<string>(
      'broken',
      () => {
        throw new TypeError('messages is undefined')
      },
      once,
    )
    const answer = await ladder([broken, sorry]).run('why?')
    expect(answer).toMatchObject({ text: 'sorry', reason: 'error' })
    expect(answer.attempts[0]?.error).toMatchObject({ message: 'messages is undefined' })
  })

  test('of one’s own that throws at once, or cannot learn, does not keep the others from answering', async () => {
    const own: Rung<string> = {
      name: 'own',
      floor: undefined,
      reserve: 0,
      asksModel: false,
      answersAtOnce: false,
      open() {
        throw new Error('no connection')
      },
      learn() {
        throw new Error('no connection')
      },
    }
    const big = model<string>('big', () => events(text('yes')), once)
    expect(await ladder([own, sorry]).run('why?')).toMatchObject({ text: 'sorry' })
    expect(await ladder([big, own]).run('why?')).toMatchObject({
      text: 'yes',
      complete: true,
      degraded: false,
    })
  })

  test('that hangs in a rule costs what time there is, and no more', async () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(1_000, { clock })
    const answer = ladder(
      [rule<string>(() => new Promise(() => undefined)), rule<string>(() => 'so', { name: 'last' })],
      {
        clock,
      },
    ).run('why?', { deadline })
    clock.advance(980)
    expect(await answer).toMatchObject({ text: 'so', rung: 'last', reason: 'operation_timeout' })
  })

  test('may be a ladder of its own', async () => {
    const inner = ladder<string>([
      model('a', () => events(new UpstreamError('503')), once),
      model('b', () => events(text('b')), once),
    ])
    const outer = ladder<string>([
      model('inner', async (question) => (await inner.run(question)).text, once),
      sorry,
    ])
    expect(await outer.run('why?')).toMatchObject({ text: 'b', degraded: false })
  })
})

test('with the breakers of all models open the rule answers and nobody is asked', async () => {
  let asked = 0
  const fails = (name: string): Rung<string> =>
    model(
      name,
      () => {
        asked += 1
        return events(new UpstreamError('503'))
      },
      { attempts: 1, breaker: breaker(name, { failures: 1 }) },
    )
  const answers = ladder([fails('open-big'), fails('open-small'), sorry])
  await answers.run('why?')
  expect(asked).toBe(2)
  const answer = await answers.run('why?')
  expect(asked).toBe(2)
  expect(answer.attempts.map(({ outcome }) => outcome)).toEqual(['circuit_open', 'circuit_open', 'ok'])
  expect(answer).toMatchObject({ text: 'sorry', reason: 'circuit_open' })
})

test('a budget that the first model has spent is spent for the second', async () => {
  const cost = new CostMeter({
    prices: { big: { input: 1e6, output: 1e6 } },
    budgets: { acme: { limit: 1 } },
  })
  let asked = 0
  const big = model<string>(
    'big',
    () => {
      const usage = { inputTokens: 1, outputTokens: 1, estimated: false }
      currentCallSettings()?.onCall?.(callOf({ model: 'big', tenant: 'acme', usage }))
      return events(new UpstreamError('503'))
    },
    once,
  )
  const small = model<string>(
    'small',
    () => {
      asked += 1
      return events(text('so'))
    },
    once,
  )
  const answer = await ladder([big, small, sorry], { cost, tenant: 'acme' }).run('why?')
  expect(answer.attempts.map(({ rung, outcome }) => [rung, outcome])).toEqual([
    ['big', 'upstream_error'],
    ['small', 'shed'],
    ['rule', 'ok'],
  ])
  expect(asked).toBe(0)
  expect(answer.cost).toMatchObject({ amount: 2 })
})

test('who listens to calls within a ladder cannot keep it from hearing of them', async () => {
  const cost = new CostMeter({ prices: { big: { input: 1, output: 1 } } })
  const big = model<string>('big', () => {
    const listener = (): never => {
      throw new Error('listener')
    }
    withCallSettings({ onCall: listener }, () => {
      expect(() => currentCallSettings()?.onCall?.(callOf({ model: 'big' }))).toThrow('listener')
    })
    return events(text('yes'))
  })
  expect((await ladder([big], { cost }).run('why?')).cost).toMatchObject({ amount: 1.1 })
})

describe('a cache', () => {
  test('that is asked first learns what the first model answers', async () => {
    const { stored, rung } = cacheOf()
    const answers = ladder([rung, model<string>('big', () => events(text('yes')), once)])
    expect(await answers.run('why?')).toMatchObject({ text: 'yes', rung: 'big' })
    await settleDown()
    expect(stored.get('why?')?.text).toBe('yes')
    expect(await answers.run('why?')).toMatchObject({ text: 'yes', rung: 'cache', degraded: false })
  })

  test('learns nothing from an answer that calls for a tool', async () => {
    const { stored, rung } = cacheOf()
    await ladder([model<string>('big', () => events(text('one moment'), toolCall), once), rung]).run('why?')
    await settleDown()
    expect(stored.size).toBe(0)
  })
})
