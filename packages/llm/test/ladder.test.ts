import { describe, expect, test, vi } from 'vitest'
import {
  ClientClosedError,
  Deadline,
  FirstTokenTimeoutError,
  StreamStalledError,
  UpstreamError,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import {
  type Answer,
  answerHeaders,
  cached,
  job,
  ladder,
  type LadderOptions,
  type ModelEvent,
  model,
  type Rung,
  rule,
  statusOf,
  type StoredAnswer,
} from '@timebudget/llm'
import { hangs, never, says, settleDown } from './support/saying.ts'

interface Asked {
  readonly clock: ManualClock
  readonly deadline: Deadline
  readonly answer: Promise<Answer>
}

function askUnder(budget: number, rungs: readonly Rung<string>[], options: LadderOptions = {}): Asked {
  const clock = new ManualClock()
  const deadline = Deadline.after(budget, { clock })
  return { clock, deadline, answer: ladder(rungs, { clock, ...options }).run('why?', { deadline }) }
}

const overloaded = new UpstreamError('503')
const bad = (name: string): Rung<string> =>
  model(name, () => says(new UpstreamError(`${name}: 503`)), { attempts: 1 })

describe('a ladder', () => {
  test('gives the first rung’s answer, which is not degraded', async () => {
    const { answer } = askUnder(5_000, [model('big', () => says('be', 'cause')), rule(() => 'sorry')])
    expect(await answer).toMatchObject({
      text: 'because',
      complete: true,
      degraded: false,
      rung: 'big',
      reason: undefined,
    })
  })

  test('goes on to the next rung, and says why', async () => {
    const { answer, deadline } = askUnder(5_000, [bad('big'), model('small', () => says('so'))])
    const given = await answer
    expect(given).toMatchObject({ text: 'so', degraded: true, rung: 'small', reason: 'upstream_error' })
    expect(given.attempts.map(({ rung, attempt, outcome }) => [rung, attempt, outcome])).toEqual([
      ['big', 1, 'upstream_error'],
      ['small', 1, 'ok'],
    ])
    expect(deadline.ledger.entries.find(({ path }) => path === 'answer')?.outcome).toBe('degraded')
    expect(answerHeaders(given)).toEqual({ 'x-degraded': 'rung="small"; reason="upstream_error"' })
    expect(statusOf(given)).toBe(200)
  })

  test('asks a model again for what may pass, and no other time than the rungs after it leave', async () => {
    let asked = 0
    const flaky = model('big', () => says(...((asked += 1) < 3 ? [overloaded] : ['at last'])), {
      attempts: 3,
      backoff: { initial: 1, max: 1 },
      budget: null,
      random: () => 0,
    })
    const { answer, clock } = askUnder(5_000, [flaky, rule(() => 'sorry')])
    for (let turn = 0; turn < 5; turn += 1) {
      await settleDown()
      clock.advance(1)
    }
    expect(await answer).toMatchObject({ text: 'at last', degraded: false })
    expect((await answer).attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'upstream_error'],
      [2, 'upstream_error'],
      [3, 'ok'],
    ])
  })

  test('moves on at once when the first token is late', async () => {
    let asked = 0
    const late = model(
      'big',
      () => {
        asked += 1
        return says(new FirstTokenTimeoutError('no token'))
      },
      { attempts: 3 },
    )
    const { answer } = askUnder(5_000, [late, rule(() => 'sorry')])
    expect(await answer).toMatchObject({ rung: 'rule', reason: 'first_token_timeout' })
    expect(asked).toBe(1)
  })

  test('starts lower down when there is too little time for the big model', async () => {
    let asked = 0
    const big = model(
      'big',
      () => {
        asked += 1
        return says('big')
      },
      { floor: '4s' },
    )
    const { answer } = askUnder(3_000, [big, model('small', () => says('small'), { floor: '1s' })])
    expect(await answer).toMatchObject({ rung: 'small', reason: 'short_circuited', degraded: true })
    expect(asked).toBe(0)
  })

  test('a rung may use only what the reserves of those after it leave', async () => {
    const granted: number[] = []
    const watch = (name: string, reserve: number): Rung<string> =>
      model(
        name,
        (_, { deadline }) => {
          granted.push(deadline.remaining())
          return says(overloaded)
        },
        { attempts: 1, reserve },
      )
    const { answer } = askUnder(
      1_000,
      [watch('a', 500), watch('b', 300), watch('c', 100), rule(() => 'r', { reserve: 20 })],
      { reserve: 50 },
    )
    expect(await answer).toMatchObject({ rung: 'rule' })
    expect(granted).toEqual([530, 830, 930])
  })

  test('answers by the rule even when everything before it has used its time up', async () => {
    const { answer, clock } = askUnder(1_000, [model('big', () => hangs()), rule(() => 'sorry')], {
      reserve: 100,
    })
    await settleDown()
    clock.advance(1_000 - 100 - 20)
    expect(await answer).toMatchObject({ text: 'sorry', reason: 'operation_timeout' })
    clock.advance(1_000)
    expect(await answer).toMatchObject({ timings: { total: 880 } })
  })

  test('of rungs that all fail throws what the last one failed with', async () => {
    const { answer } = askUnder(1_000, [bad('big'), bad('small')])
    await expect(answer).rejects.toMatchObject({ message: 'small: 503' })
  })

  test('a rung that has no answer passes the question on', async () => {
    const { answer } = askUnder(1_000, [
      rule<string>(() => undefined, { name: 'first' }),
      rule<string>(() => 'second'),
    ])
    expect(await answer).toMatchObject({ text: 'second', reason: 'short_circuited' })
  })

  test('a user who leaves gets no further rung, and that is no failure of anybody', async () => {
    let ruled = 0
    const { answer, deadline } = askUnder(5_000, [
      model('big', () => hangs('so')),
      rule(() => {
        ruled += 1
        return 'sorry'
      }),
    ])
    await settleDown()
    deadline.cancel(new ClientClosedError('gone'))
    await expect(answer).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(ruled).toBe(0)
  })

  test('a model’s work that must not be done twice is asked of no second model', async () => {
    const asked: string[] = []
    const acts = (name: string): Rung<string> =>
      model(
        name,
        () => {
          asked.push(name)
          return says(overloaded)
        },
        { attempts: 3 },
      )
    const { answer } = askUnder(5_000, [acts('big'), acts('small'), rule(() => 'sorry')], {
      idempotent: false,
    })
    expect(await answer).toMatchObject({ rung: 'rule' })
    expect(asked).toEqual(['big'])
  })

  test('gives all attempts of a rung one idempotency key, and each rung its own', async () => {
    const keys: string[] = []
    const noting = (name: string): Rung<string> =>
      model(
        name,
        (_, { idempotencyKey }) => {
          keys.push(idempotencyKey)
          return says(overloaded)
        },
        { attempts: 2, backoff: { initial: 0 }, budget: null },
      )
    const rungs = [noting('big'), noting('small'), rule(() => 'sorry')]
    await ladder(rungs).run('why?', { idempotencyKey: 'k1' })
    expect(keys).toEqual(['k1', 'k1', 'k1.small', 'k1.small'])
  })

  test('a tenant who has spent its budget is answered without a model', async () => {
    const refusal = new UpstreamError('spent')
    let asked = 0
    const cost = {
      record: () => undefined,
      costOf: () => undefined,
      refuse: () => refusal,
      noteSuccess: () => undefined,
    }
    const big = model('big', () => {
      asked += 1
      return says('dear')
    })
    const { answer } = askUnder(1_000, [big, rule(() => 'sorry')], { cost })
    expect(await answer).toMatchObject({ rung: 'rule', degraded: true })
    expect(asked).toBe(0)
  })

  test.each([
    { rungs: [], names: 'rungs' },
    { rungs: [rule(() => ''), rule(() => '')], names: "'rule'" },
  ])('names what it cannot be made of: $names', ({ rungs, names }) => {
    expect(() => ladder(rungs)).toThrow(names)
  })

  test('names options that do not exist or cannot be read', () => {
    const rungs = [rule(() => '')]
    expect(() => ladder(rungs, { reserv: 1 } as LadderOptions)).toThrow('reserv')
    expect(() => ladder(rungs, { reserve: -1 })).toThrow('reserve')
    expect(() => ladder(rungs, { partial: 'keep' as 'throw' })).toThrow('partial')
  })
})

describe('an answer that is cut off', () => {
  test('after some text is given as it is, incomplete and with the reason', async () => {
    const { answer } = askUnder(5_000, [
      model('big', () => says('half ', new StreamStalledError('silence'))),
      rule(() => 'sorry'),
    ])
    const given = await answer
    expect(given).toMatchObject({
      text: 'half ',
      complete: false,
      degraded: true,
      rung: 'big',
      reason: 'stream_stalled',
    })
    expect(answerHeaders(given)).toEqual({ 'x-degraded': 'rung="big"; reason="stream_stalled"; partial' })
  })

  test('or is thrown away, if that is what is wanted', async () => {
    const rungs = [
      model('big', () => says('half ', new StreamStalledError('silence'))),
      rule<string>(() => 'sorry'),
    ]
    const { answer } = askUnder(5_000, rungs, { partial: 'throw' })
    expect(await answer).toMatchObject({ text: 'sorry', rung: 'rule' })
  })

  test('by its provider is not shown while another rung has a whole one', async () => {
    const broken = model<string>('big', () => says('half ', overloaded))
    expect(await askUnder(5_000, [broken, rule(() => 'whole')]).answer).toMatchObject({
      text: 'whole',
      rung: 'rule',
    })
    expect(await askUnder(5_000, [broken, bad('small')]).answer).toMatchObject({
      text: 'half ',
      complete: false,
      rung: 'big',
    })
  })
})

describe('a ladder’s stream', () => {
  async function read(rungs: readonly Rung<string>[], options: LadderOptions = {}) {
    const stream = ladder(rungs, options).stream('why?')
    const tokens: string[] = []
    let error: unknown
    try {
      for await (const { rung, text } of stream) tokens.push(`${rung}:${text}`)
    } catch (thrown) {
      error = thrown
    }
    return { tokens, error, answer: await stream.answer.catch((reason: unknown) => reason) }
  }

  test('says nothing twice: once text was given, no other rung begins again', async () => {
    const { tokens, answer } = await read([
      model('big', () => says('half ', overloaded)),
      rule(() => 'whole'),
    ])
    expect(tokens).toEqual(['big:half '])
    expect(answer).toMatchObject({ text: 'half ', complete: false, rung: 'big', reason: 'upstream_error' })
  })

  test('moves on while nothing but reasoning was given', async () => {
    async function* thinks(): AsyncGenerator<ModelEvent> {
      yield { type: 'reasoning', text: 'hm' }
      throw overloaded
    }
    const { tokens, answer } = await read([model('big', thinks), rule(() => 'whole')])
    expect(tokens).toEqual(['big:hm', 'rule:whole'])
    expect(answer).toMatchObject({ text: 'whole', complete: true })
  })

  test('fails with what cut it off, if partial answers are not wanted', async () => {
    const { tokens, error, answer } = await read([model('big', () => says('half ', overloaded))], {
      partial: 'throw',
    })
    expect(tokens).toEqual(['big:half '])
    expect(error).toBe(answer)
    expect(error).toMatchObject({ code: 'UPSTREAM_ERROR' })
  })

  test('that its reader leaves stops the model', async () => {
    let signal: AbortSignal | undefined
    const big = model<string>('big', (_, scope) => {
      signal = scope.signal
      return hangs('one ', 'two ')
    })
    const stream = ladder([big, rule(() => 'sorry')]).stream('why?')
    for await (const { text } of stream) {
      expect(text).toBe('one ')
      break
    }
    expect(signal?.aborted).toBe(true)
    await expect(stream.answer).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})

describe('a cache', () => {
  function cacheOf(entries: Record<string, unknown> = {}) {
    const stored = new Map(Object.entries(entries))
    return {
      stored,
      get: async ({ key }: { key: string }) => stored.get(key),
      async set({ key, value }: { key: string; value: StoredAnswer }) {
        stored.set(key, value)
      },
    }
  }

  test('keeps complete answers of the first model, and gives them while they are young', async () => {
    const clock = new ManualClock()
    const cache = cacheOf()
    let isUp = true
    const big = model<string>('big', () => says(...(isUp ? ['because'] : [overloaded])), { attempts: 1 })
    const rungs = [
      big,
      cached<string>(cache, { key: (question) => question, maxAge: '1h', clock }),
      rule<string>(() => 'sorry'),
    ]
    const answers = ladder(rungs, { clock })
    await answers.run('why?')
    await settleDown()
    isUp = false
    expect(await answers.run('why?')).toMatchObject({ text: 'because', rung: 'cache', degraded: true })
    expect(await answers.run('how?')).toMatchObject({ text: 'sorry', rung: 'rule' })
    clock.advance(3_600_001)
    expect(await answers.run('why?')).toMatchObject({ text: 'sorry', rung: 'rule' })
  })

  test('gives the answer to a similar question, if it is similar and young enough', async () => {
    const clock = new ManualClock()
    for (const { similarity, age, rung } of [
      { similarity: 0.95, age: 0, rung: 'cache' },
      { similarity: 0.85, age: 0, rung: 'rule' },
      { similarity: 0.95, age: 7_200_000, rung: 'rule' },
      { similarity: Number.NaN, age: 0, rung: 'rule' },
    ]) {
      const similar = async () => ({ text: 'much the same', similarity, storedAt: clock.epoch() - age })
      const rungs = [
        cached<string>(cacheOf(), { key: (question) => question, similar, clock }),
        rule<string>(() => 'sorry'),
      ]
      expect(await ladder(rungs, { clock }).run('why?')).toMatchObject({ rung })
    }
  })

  test('that hangs or fails costs no more than its own time', async () => {
    const hung = { get: never, set: never }
    const { answer, clock } = askUnder(5_000, [
      cached(hung, { key: (question) => question, reserve: 100 }),
      rule(() => 'sorry'),
    ])
    await settleDown()
    clock.advance(100)
    expect(await answer).toMatchObject({ rung: 'rule', timings: { total: 100 } })
    const broken = { get: () => Promise.reject(new Error('down')), set: never }
    expect(
      await askUnder(5_000, [cached(broken, { key: String }), rule(() => 'sorry')]).answer,
    ).toMatchObject({ rung: 'rule' })
  })

  test('that holds something else than an answer holds none', async () => {
    for (const value of [null, 'text', { text: 5 }, { text: 'old' }]) {
      const rungs = [cached<string>(cacheOf({ 'why?': value }), { key: String }), rule<string>(() => 'sorry')]
      expect(await ladder(rungs).run('why?')).toMatchObject({ rung: 'rule' })
    }
  })
})

describe('a job', () => {
  test('puts the work off and says where to ask, with 202', async () => {
    const added: unknown[] = []
    const queue = {
      async add(...call: unknown[]) {
        added.push(call)
        return { id: '7' }
      },
    }
    const answer = await ladder([bad('big'), job<string>(queue)]).run('why?', { idempotencyKey: 'k1' })
    expect(answer).toMatchObject({
      text: '',
      rung: 'job',
      degraded: true,
      job: { id: '7', location: '/answers/7' },
    })
    expect(added).toEqual([['job', 'why?', { jobId: 'k1.job' }]])
    expect(statusOf(answer)).toBe(202)
    expect(answerHeaders(answer)).toMatchObject({ location: '/answers/7', 'retry-after': '5' })
  })

  test('without a queue is not there, and says so once', async () => {
    const warnings: string[] = []
    const note = (warning: Error): unknown => warnings.push(warning.message)
    process.on('warning', note)
    const answers = ladder([job<string>(undefined), rule<string>(() => 'sorry')])
    expect(await answers.run('why?')).toMatchObject({ rung: 'rule' })
    await new Promise(setImmediate)
    process.off('warning', note)
    expect(warnings.filter((message) => message.includes("the rung 'job' has no queue"))).toHaveLength(1)
  })
})

test('four rungs of which each hangs: the rule answers before the deadline, always', async () => {
  // of budgets that are too small for a model: many of these are
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  let state = 20261130
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x7fffffff
  }
  for (let run = 0; run < 1_000; run += 1) {
    const budget = 50 + Math.floor(random() * 20_000)
    const clock = new ManualClock()
    const deadline = Deadline.after(budget, { clock })
    const hanging = (name: string): Rung<string> =>
      model(name, () => (random() < 0.5 ? hangs() : never()), {
        attempts: 1 + Math.floor(random() * 3),
        floor: Math.floor(random() * budget * 0.6),
        reserve: Math.floor(random() * budget * 0.3),
      })
    const rungs = [
      hanging('a'),
      hanging('b'),
      cached<string>({ get: never, set: never }, { key: String }),
      rule<string>(() => 'sorry'),
    ]
    const answers = ladder(rungs, { clock, reserve: Math.floor(random() * budget * 0.2) })
    let given: Answer | undefined
    const answer = answers.run('why?', { deadline }).then((value) => (given = value))
    for (let moment = 0; given === undefined && moment < budget;) {
      await settleDown()
      const step = Math.max(1, Math.floor(random() * budget * 0.2))
      moment += step
      if (given === undefined) clock.advance(Math.min(step, budget - 0.001 - clock.now()))
    }
    await settleDown()
    expect(given, `run ${run}`).toMatchObject({ text: 'sorry', rung: 'rule' })
    await answer
    expect(deadline.expired).toBe(false)
  }
  warnings.mockRestore()
})
