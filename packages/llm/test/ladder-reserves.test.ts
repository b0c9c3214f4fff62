import { Deadline, operation, runWithDeadline, UpstreamError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import {
  type Answer,
  cached,
  governedFetch,
  job,
  ladder,
  type LadderOptions,
  model,
  type ModelEvent,
  type ModelOptions,
  openaiChat,
  type Rung,
  rule,
  type Token,
} from '@timebudget/llm'
import {
  localProvider,
  type LocalProvider,
  neverAnswers,
  type Script,
  steadyTokens,
} from '@timebudget/llm/testing'
import { breaker } from '@timebudget/resilience'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { hangs, never, says, settleDown } from './support/saying.ts'

const once: ModelOptions = { attempts: 1 }
const sorry = rule<string>(() => 'sorry')
const overloaded = new UpstreamError('503')
const triesOf = ({ attempts }: Answer): readonly unknown[] =>
  attempts.map(({ rung, attempt, outcome }) => [rung, attempt, outcome])

/** A process that is kept from the processor for longer than we allow for is no fault of ours. */
const patiently = { retry: 3 }

/** A model that notes what it may take, fails, and leaves the next one its turn. */
function noting(granted: number[], name: string, options: ModelOptions = {}): Rung<string> {
  return model(
    name,
    (_, { deadline }) => {
      granted.push(deadline.remaining())
      return says(overloaded)
    },
    { ...once, ...options },
  )
}

describe('of a real clock, whose timers are late', () => {
  const providers: LocalProvider[] = []
  afterEach(async () => {
    for (const provider of providers.splice(0)) await provider.close()
  })

  /** Models of a real provider, over a real SDK. */
  async function modelsOf(scripts: Readonly<Record<string, Script>>) {
    const provider = await localProvider({ script: ({ body }) => scripts[String(body['model'])] ?? {} })
    providers.push(provider)
    const fetch = governedFetch({ profile: { connect: '5s', firstToken: '20s', idle: '20s', total: '60s' } })
    const client = new OpenAI({ fetch, baseURL: provider.openaiUrl, apiKey: 'test', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'Why?' }]
    return (name: string, options: ModelOptions): Rung<string> =>
      model(name, (_, scope) => openaiChat(client, { model: name, messages }, scope), options)
  }

  test.each<{ readonly what: string; readonly small: ModelOptions }>([
    { what: 'a floor', small: { floor: '900ms' } },
    { what: 'a floor and no more than that kept for it', small: { floor: '900ms', reserve: '900ms' } },
    { what: 'neither floor nor reserve', small: {} },
  ])('the second model of three rungs has its turn, with $what', patiently, async ({ small }) => {
    const rungOf = await modelsOf({ big: neverAnswers(), small: steadyTokens(2) })
    await ladder([rungOf('small', {})]).run('why?') // code that runs for the first time takes its time
    const deadline = Deadline.after('2s')
    const rungs = [rungOf('big', { floor: '300ms' }), rungOf('small', small), sorry]
    const answer = await ladder(rungs).run('why?', { deadline })
    expect(triesOf(answer)).toEqual([
      ['big', 1, 'operation_timeout'],
      ['small', 1, 'ok'],
    ])
    expect(answer).toMatchObject({ text: 'word word', rung: 'small' })
    expect(deadline.expired).toBe(false)
    deadline.settle()
  })

  test('a long answer that is being shown is not cut off for the sake of rungs that have no turn after it', async () => {
    const rungOf = await modelsOf({ big: steadyTokens(15, 100) })
    const deadline = Deadline.after('5s')
    const stream = ladder([rungOf('big', {}), rungOf('small', { reserve: '4s' }), sorry]).stream('why?', {
      deadline,
    })
    const pieces: Token[] = []
    for await (const piece of stream) pieces.push(piece)
    const answer = await stream.answer
    expect(pieces).toHaveLength(15)
    expect(answer).toMatchObject({ complete: true, degraded: false, rung: 'big' })
    expect(answer.timings.total).toBeGreaterThan(1_000)
    deadline.settle()
  })
})

describe('what is kept for a rung', () => {
  test.each([0, 40, 100])('reaches it when the timer before it is %i ms late', async (lateBy) => {
    const clock = new ManualClock()
    const deadline = Deadline.after(5_000, { clock })
    const rungs = [
      model<string>('big', () => hangs(), { floor: '2s' }),
      model<string>('small', () => says('so'), { floor: '1s' }),
      sorry,
    ]
    const answer = ladder(rungs, { clock, reserve: 200 }).run('why?', { deadline })
    await settleDown()
    clock.block(5_000 - 200 - 100 - 1_100 + lateBy)
    clock.advance(0)
    expect(await answer).toMatchObject({ text: 'so', rung: 'small', reason: 'operation_timeout' })
  })

  test.each([
    { lateBy: 100, rung: 'small' },
    { lateBy: 101, rung: 'rule' },
  ])('counts as kept although it is its floor and no more: $lateBy ms late', async ({ lateBy, rung }) => {
    const clock = new ManualClock()
    const deadline = Deadline.after(5_000, { clock })
    const rungs = [
      model<string>('big', () => hangs()),
      model<string>('small', () => says('so'), { floor: '1s', reserve: '1s' }),
      sorry,
    ]
    const answer = ladder(rungs, { clock }).run('why?', { deadline })
    await settleDown()
    clock.block(3_900 + lateBy)
    clock.advance(0)
    expect(await answer).toMatchObject({ rung })
  })

  test('does not soften its floor where nobody was cut off', async () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(1_090, { clock })
    const rungs = [
      model<string>('big', () => says(overloaded), { attempts: 1, floor: 0 }),
      model<string>('small', () => says('so'), { floor: '1s', reserve: 0 }),
      sorry,
    ]
    const answer = await ladder(rungs, { clock }).run('why?', { deadline })
    expect(triesOf(answer)).toEqual([
      ['big', 1, 'upstream_error'],
      ['small', 0, 'short_circuited'],
      ['rule', 1, 'ok'],
    ])
  })

  test.each([
    { what: 'a second for a model that says nothing of it', budget: 10_000, granted: [7_900, 8_900, 9_900] },
    { what: 'an equal share if there is less', budget: 700, granted: [200, 300, 600] },
  ])('is $what', async ({ budget, granted }) => {
    const clock = new ManualClock()
    const given: number[] = []
    const rungs = [noting(given, 'a'), noting(given, 'b'), noting(given, 'c'), sorry]
    await ladder(rungs, { clock }).run('why?', { deadline: Deadline.after(budget, { clock }) })
    expect(given).toEqual(granted)
  })

  test('is nothing that the floor of a rung before it needs, unless somebody has asked for it', async () => {
    const clock = new ManualClock()
    const given: number[] = []
    const rungs = [noting(given, 'a', { floor: '2s' }), noting(given, 'b'), sorry]
    await ladder(rungs, { clock }).run('why?', { deadline: Deadline.after(2_150, { clock }) })
    expect(given).toEqual([2_000, 2_050])
  })

  test('leaves the first model most of the five seconds that a request has by default', async () => {
    const clock = new ManualClock()
    const given: number[] = []
    const nothing = async (): Promise<undefined> => undefined
    const rungs = [
      noting(given, 'gpt-5', { floor: '2s' }),
      noting(given, 'gpt-5-mini'),
      cached<string>({ get: nothing, set: nothing }, { key: String }),
      job<string>({ add: async () => ({ id: '1' }) }),
      sorry,
    ]
    await ladder(rungs, { clock }).run('why?', { deadline: Deadline.after('5s', { clock }) })
    expect(given).toEqual([3_600, 4_600])
  })

  test('is its floor, and what timers are late by', async () => {
    const clock = new ManualClock()
    const given: number[] = []
    const rungs = [noting(given, 'a'), noting(given, 'b', { floor: '1s' }), sorry]
    await ladder(rungs, { clock }).run('why?', { deadline: Deadline.after(5_000, { clock }) })
    expect(given).toEqual([3_800, 4_900])
  })
})

describe('of a stream', () => {
  /** A model that says its pieces one by one, when it is told to. */
  function prompted(pieces: readonly ModelEvent[]) {
    const waiting: Array<() => void> = []
    async function* speak(): AsyncGenerator<ModelEvent> {
      for (const piece of pieces) {
        await new Promise<void>((resolve) => waiting.push(resolve))
        yield piece
      }
    }
    const rung = model<string>('big', speak, once)
    return { rung, speak: () => waiting.shift()?.() }
  }

  const text = (piece: string): ModelEvent => ({ type: 'text', text: piece })

  function streamUnder(budget: number, rungs: readonly Rung<string>[], options: LadderOptions = {}) {
    const clock = new ManualClock()
    const deadline = Deadline.after(budget, { clock })
    const stream = ladder(rungs, { clock, ...options }).stream('why?', { deadline })
    return { clock, reader: stream[Symbol.asyncIterator](), answer: stream.answer }
  }

  test('a rung that has shown text may use all the time but what the ladder keeps for itself', async () => {
    const big = prompted([text('one '), text('two')])
    const small = model<string>('small', () => says('small'), { reserve: '3s' })
    const { clock, reader, answer } = streamUnder(10_000, [big.rung, small, sorry], { reserve: 500 })
    const first = reader.next()
    await settleDown()
    big.speak()
    expect(await first).toMatchObject({ value: { text: 'one ' } })
    const second = reader.next()
    await settleDown()
    clock.advance(9_499)
    big.speak()
    expect(await second).toMatchObject({ value: { text: 'two' } })
    expect(await reader.next()).toMatchObject({ done: true })
    expect(await answer).toMatchObject({ text: 'one two', complete: true, degraded: false })
  })

  test('what the ladder keeps for itself it keeps from that rung too', async () => {
    const big = prompted([text('one '), text('two')])
    const { clock, reader, answer } = streamUnder(10_000, [big.rung, sorry], { reserve: 500 })
    const first = reader.next()
    await settleDown()
    big.speak()
    await first
    const second = reader.next()
    await settleDown()
    clock.advance(9_500)
    await second
    expect(await answer).toMatchObject({ text: 'one ', complete: false, reason: 'operation_timeout' })
  })

  test('a rung that has shown nothing but its reasoning leaves the next one its turn', async () => {
    const big = prompted([{ type: 'reasoning', text: 'hm' }, text('never')])
    const small = model<string>('small', () => says('small'), { reserve: '3s' })
    const { clock, reader, answer } = streamUnder(10_000, [big.rung, small, sorry])
    const first = reader.next()
    await settleDown()
    big.speak()
    await first
    const second = reader.next()
    await settleDown()
    clock.advance(6_900)
    expect(await second).toMatchObject({ value: { rung: 'small', text: 'small' } })
    await reader.next()
    const given = await answer
    expect(triesOf(given)).toEqual([
      ['big', 1, 'operation_timeout'],
      ['small', 1, 'ok'],
    ])
    expect(given.timings.total).toBe(6_900)
  })

  test('a model whose turn was short is not blamed by its breaker as if it had had all the time', async () => {
    const guard = breaker('big', { failures: 1, patience: '5s' })
    const big = model<string>('big', () => hangs(), { breaker: guard })
    const small = model<string>('small', () => says('small'), { reserve: '6s' })
    const { clock, reader, answer } = streamUnder(10_000, [big, small, sorry])
    const first = reader.next()
    await settleDown()
    clock.advance(3_900)
    expect(await first).toMatchObject({ value: { rung: 'small' } })
    await reader.next()
    expect(triesOf(await answer)[0]).toEqual(['big', 1, 'operation_timeout'])
    await settleDown()
    expect(guard.state).toBe('closed')
  })

  test('no rung waits for another attempt in time that is not its own', async () => {
    const busy = new UpstreamError('429', { retryAfter: 3_000 })
    const big = model<string>('big', () => says(busy), { attempts: 2, budget: null })
    const small = model<string>('small', () => says('small'), { reserve: '3s' })
    const { clock, reader, answer } = streamUnder(5_000, [big, small, sorry])
    expect(await reader.next()).toMatchObject({ value: { rung: 'small' } })
    await reader.next()
    expect(triesOf(await answer)).toEqual([
      ['big', 1, 'upstream_error'],
      ['small', 1, 'ok'],
    ])
    expect(clock.now()).toBe(0)
  })

  test('leaves no timer behind, however its rungs have ended', async () => {
    const big = prompted([text('one')])
    const { clock, reader, answer } = streamUnder(Infinity, [
      model<string>('first', () => says(overloaded), once),
      big.rung,
      sorry,
    ])
    const first = reader.next()
    await settleDown()
    big.speak()
    await first
    await reader.next()
    await answer
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('each attempt is told once, in order', () => {
  test('also one that was cut off while it ran', async () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(5_000, { clock })
    let asked = 0
    const big = model<string>('big', () => ((asked += 1) === 1 ? says(overloaded) : never()), {
      attempts: 2,
      backoff: { initial: 0 },
      budget: null,
    })
    const small = model<string>('small', () => says('so'))
    const answer = ladder([big, small, sorry], { clock }).run('why?', { deadline })
    await settleDown()
    clock.advance(3_900)
    const given = await answer
    await settleDown()
    expect(given.attempts).toMatchObject([
      { rung: 'big', attempt: 1, outcome: 'upstream_error', spent: 0 },
      { rung: 'big', attempt: 2, outcome: 'operation_timeout', spent: 3_900 },
      { rung: 'small', attempt: 1, outcome: 'ok', spent: 0 },
    ])
    expect(given.attempts).toHaveLength(3)
  })

  test('in tenths of milliseconds, as all times of an answer', async () => {
    const answer = await ladder([
      model<string>('big', async () => {
        await new Promise(setImmediate)
        return 'so'
      }),
    ]).run('why?')
    const isInTenths = (time: number): boolean => Math.round(time * 10) / 10 === time
    expect(
      [answer.timings.total, ...answer.attempts.map(({ spent }) => spent)].filter(isInTenths),
    ).toHaveLength(2)
  })
})

describe('a budget in which a model can never be asked', () => {
  /** What is warned of while this runs. */
  async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
    const warnings: string[] = []
    const note = (warning: Error): unknown => warnings.push(`${warning.name}: ${warning.message}`)
    process.on('warning', note)
    await work()
    await new Promise(setImmediate)
    process.off('warning', note)
    return warnings
  }

  const big = (floor: string): Rung<string> => model('big', () => says('so'), { floor })
  const small = model<string>('small', () => says('so'), { floor: '1s' })

  test('is warned of once', async () => {
    const answers = ladder([big('4s'), small, sorry], { reserve: '200ms' })
    const warnings = await warningsOf(async () => {
      for (let time = 0; time < 3; time += 1) {
        const answer = await answers.run('why?', { deadline: Deadline.after('5s') })
        expect(answer).toMatchObject({ rung: 'small', reason: 'short_circuited' })
      }
    })
    expect(warnings).toEqual([
      "TimeBudgetWarning: the ladder 'answer' can never ask 'big' under a budget of 5000 ms: its floor is 4000 ms, and 1400 ms are kept for what comes after it",
    ])
  })

  test('is not that of a request whose time others have used up', async () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('6s', { clock })
    const answers = ladder([big('4s'), small, sorry], { clock })
    const warnings = await warningsOf(() =>
      runWithDeadline(deadline, async () => {
        await operation('retrieve', {}, () => clock.advance(3_000))
        const answer = await operation('answer', {}, () => answers.run('why?'))
        expect(answer).toMatchObject({ rung: 'small' })
      }),
    )
    expect(warnings).toEqual([])
  })
})
