import { getEventListeners } from 'node:events'
import { ClientClosedError, Deadline, UpstreamError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { type Ask, ladder, type LlmAnswered, llmAnswered, model, rule } from '@timebudget/llm'
import { breaker } from '@timebudget/resilience'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hangs, says, settleDown } from './support/saying.ts'

/** Every question that has come to its end. */
let told: LlmAnswered[] = []
let stop: () => void
beforeEach(() => {
  told = []
  stop = llmAnswered.subscribe((answered) => told.push(answered))
})
afterEach(() => stop())

const ends = (): readonly string[] => told.map(({ outcome }) => outcome)

function underClock(budget = 5_000): { readonly clock: ManualClock; readonly ask: Ask } {
  const clock = new ManualClock()
  return { clock, ask: { deadline: Deadline.after(budget, { clock }) } }
}

describe('a stream of an answer', () => {
  test('that nobody ever reads ends with its time, is told of once, and asks no model', async () => {
    const { clock, ask } = underClock()
    let asked = 0
    const big = model<string>('big', () => {
      asked += 1
      return says('yes')
    })
    const { answer } = ladder([big], { clock }).stream('why?', ask)
    clock.advance(5_000)
    await expect(answer).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(ends()).toEqual(['deadline_exceeded'])
    expect(asked).toBe(0)
  })

  test('that is read after its time has the reason, as the answer has', async () => {
    const { clock, ask } = underClock()
    const stream = ladder([model<string>('big', () => says('yes'))], { clock }).stream('why?', ask)
    clock.advance(5_000)
    await settleDown()
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await expect(stream.answer).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(ends()).toEqual(['deadline_exceeded'])
  })

  test('that is left before its first piece is wanted asks no model', async () => {
    const { clock, ask } = underClock()
    let asked = 0
    const big = model<string>('big', () => {
      asked += 1
      return says('yes')
    })
    const stream = ladder([big], { clock }).stream('why?', ask)
    const reader = stream[Symbol.asyncIterator]()
    expect(await reader.return?.()).toMatchObject({ done: true })
    await expect(stream.answer).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(await reader.next()).toMatchObject({ done: true })
    expect(asked).toBe(0)
    expect(ends()).toEqual(['cancelled'])
  })

  test('that is left while its model is silent stops the model at once', async () => {
    const { clock, ask } = underClock()
    let signal: AbortSignal | undefined
    const guard = breaker('leaving', { failures: 1, clock })
    const big = model<string>(
      'big',
      (_, scope) => {
        signal = scope.signal
        return hangs('be')
      },
      { breaker: guard },
    )
    const stream = ladder([big, rule(() => 'sorry')], { clock }).stream('why?', ask)
    const reader = stream[Symbol.asyncIterator]()
    expect(await reader.next()).toMatchObject({ value: { text: 'be' } })
    const pending = reader.next()
    await settleDown()
    await reader.return?.()
    expect(await pending).toMatchObject({ done: true })
    expect(signal?.aborted).toBe(true)
    expect(guard.state).toBe('closed')
    await expect(stream.answer).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(ends()).toEqual(['cancelled'])
    expect(ask.deadline?.ledger.entries.map(({ path, outcome }) => [path, outcome])).toContainEqual([
      'answer',
      'cancelled',
    ])
  })

  test('whose reader never comes back is what it had said when its time was up', async () => {
    const { clock, ask } = underClock()
    const stream = ladder([model<string>('big', () => hangs('be', 'cause'))], { clock }).stream('why?', ask)
    const reader = stream[Symbol.asyncIterator]()
    await reader.next()
    clock.advance(5_000)
    expect(await stream.answer).toMatchObject({ text: 'be', complete: false, reason: 'deadline_exceeded' })
    expect(ends()).toHaveLength(1)
    expect(await reader.next()).toMatchObject({ done: true })
  })

  test('whose user goes while nobody reads fails, and is told of once', async () => {
    const { clock, ask } = underClock()
    const stream = ladder([model<string>('big', () => hangs('be'))], { clock }).stream('why?', ask)
    const reader = stream[Symbol.asyncIterator]()
    await reader.next()
    ask.deadline?.cancel(new ClientClosedError('gone'))
    await expect(stream.answer).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    await expect(reader.next()).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(ends()).toEqual(['client_closed'])
  })

  test('has one reader', async () => {
    const stream = ladder([model<string>('big', () => says('yes'))]).stream('why?')
    for await (const _ of stream);
    expect(() => stream[Symbol.asyncIterator]()).toThrow(/one reader/)
    expect(await stream.answer).toMatchObject({ text: 'yes' })
    expect(ends()).toEqual(['ok'])
  })

  test('of a user who had stopped before is refused at once, also if nobody reads it', async () => {
    const stream = ladder([rule<string>(() => 'sorry')]).stream('why?', { signal: AbortSignal.abort() })
    await expect(stream.answer).rejects.toMatchObject({ code: 'CANCELLED' })
    // by the promise, as everywhere, so that whoever pipes it need not expect an exception
    const web = ReadableStream.from(stream).getReader()
    await expect(web.read()).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(ends()).toEqual(['cancelled'])
  })

  test('may be piped as a web stream, whose cancellation stops the model', async () => {
    let signal: AbortSignal | undefined
    const big = model<string>('big', (_, scope) => {
      signal = scope.signal
      return hangs()
    })
    const stream = ladder([big]).stream('why?')
    const reader = ReadableStream.from(stream).getReader()
    const pending = reader.read()
    await settleDown()
    await reader.cancel()
    expect(await pending).toMatchObject({ done: true })
    expect(signal?.aborted).toBe(true)
    expect(ends()).toEqual(['cancelled'])
  })
})

test('every question is told of once, however it ends, and leaves no listener on the user’s signal', async () => {
  const stop = new AbortController()
  const overloaded = new UpstreamError('503')
  const bad = model<string>('bad', () => says(overloaded), { attempts: 1, breaker: null })
  const good = model<string>('good', () => says('yes'), { breaker: null })
  const broken = model<string>('broken', () => says('be', overloaded), { attempts: 1, breaker: null })
  const ladders = [ladder([good]), ladder([bad, good]), ladder([broken]), ladder([bad])]
  const questions = Array.from({ length: 200 }, (_, index) => index)
  await Promise.all(
    questions.map(async (index) =>
      ladders[index % 4]?.run('why?', { signal: stop.signal }).catch(() => undefined),
    ),
  )
  expect(told).toHaveLength(200)
  expect(new Set(ends())).toEqual(new Set(['ok', 'degraded', 'upstream_error']))
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
})

test('a thousand questions at once are a thousand answers', async () => {
  const slow = model<number>(
    'slow',
    async (nth) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (nth % 2 === 0) throw new UpstreamError('503')
      return `${nth}`
    },
    { attempts: 1, breaker: null },
  )
  const answers = ladder([slow, rule((nth) => `rule ${String(nth)}`)])
  const given = await Promise.all(Array.from({ length: 1_000 }, (_, nth) => answers.run(nth)))
  expect(given.map(({ text }) => text)).toEqual(
    given.map((_, nth) => (nth % 2 === 0 ? `rule ${nth}` : `${nth}`)),
  )
  expect(told).toHaveLength(1_000)
})
