import { expect, test } from 'vitest'
import { ClientClosedError, Deadline, FirstTokenTimeoutError, StreamStalledError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { Figures, ladder, llmCallFinished, model, rule } from '@timebudget/llm'
import { callOf } from './support/calls.ts'
import { says } from './support/saying.ts'

test('nothing counted is no figure', () => {
  const { questions, calls, costPerSuccess, ...shares } = new Figures().current()
  expect([questions, calls, costPerSuccess]).toEqual([0, 0, {}])
  expect(Object.entries(shares).filter(([, share]) => share !== undefined && share !== 0)).toEqual([])
})

test('main and degraded success are told apart, and users who leave count as neither', async () => {
  const figures = new Figures()
  const stop = figures.watch()
  const answersOf = (...pieces: (string | Error)[]) =>
    ladder([model<string>('big', () => says(...pieces), { attempts: 1 }), rule<string>(() => 'sorry')])
  for (let run = 0; run < 6; run += 1) await answersOf('fine').run('why?')
  for (let run = 0; run < 2; run += 1) await answersOf(new FirstTokenTimeoutError('late')).run('why?')
  await answersOf('half', new StreamStalledError('silent')).run('why?')
  await ladder([model<string>('big', () => says(new Error('broken')))])
    .run('why?')
    .catch(() => undefined)
  const gone = Deadline.after(1_000)
  gone.cancel(new ClientClosedError('gone'))
  await answersOf('fine')
    .run('why?', { deadline: gone })
    .catch(() => undefined)
  stop()
  await answersOf('fine').run('why?')
  expect(figures.current()).toMatchObject({
    questions: 10,
    abandoned: 1,
    mainSuccess: 0.6,
    degradedSuccess: 0.2,
    degradedShare: 3 / 9,
    partialShare: 1 / 9,
  })
})

test('timeouts of the first token and stalls are shares of the calls whose users stayed', () => {
  const figures = new Figures()
  const stop = figures.watch()
  for (let call = 0; call < 7; call += 1) llmCallFinished.publish(() => callOf({}))
  llmCallFinished.publish(() => callOf({ outcome: 'first_token_timeout' }))
  llmCallFinished.publish(() => callOf({ outcome: 'stream_stalled' }))
  llmCallFinished.publish(() => callOf({ outcome: 'upstream_error' }))
  llmCallFinished.publish(() => callOf({ outcome: 'client_closed' }))
  llmCallFinished.publish(() => callOf({ outcome: 'upstream_error', sdkRetry: true }))
  llmCallFinished.publish(() => callOf({ outcome: 'short_circuited', timings: { total: 0 } }))
  stop()
  expect(figures.current()).toMatchObject({ calls: 10, firstTokenTimeoutRate: 0.1, stallRate: 0.1 })
})

test('calls that were cut off before their first token make its P95 longer', () => {
  const clock = new ManualClock()
  const withCut = new Figures({ clock })
  const without = new Figures({ clock })
  for (let call = 1; call <= 200; call += 1) {
    const timings = { total: 1_000, firstToken: call }
    without.addCall(callOf({ timings }))
    withCut.addCall(
      callOf(call > 180 ? { outcome: 'first_token_timeout', timings: { total: 180 } } : { timings }),
    )
  }
  expect(without.current().firstTokenP95).toBeGreaterThan(185)
  expect(without.current().firstTokenP95).toBeLessThan(195)
  const p95 = withCut.current().firstTokenP95
  expect(p95 === undefined || p95 >= 178).toBe(true)
})

test('calls whose time was up before any token are first-token timeouts, by whichever limit, and no time of a token', () => {
  const figures = new Figures()
  const cut = { timings: { total: 1_340 } }
  for (let call = 0; call < 30; call += 1) {
    figures.addCall(callOf({ ...cut, outcome: 'operation_timeout', streams: true }))
    figures.addCall(callOf({ ...cut, outcome: 'deadline_exceeded', streams: true }))
    figures.addCall(callOf({ ...cut, outcome: 'total_timeout', streams: false }))
    figures.addCall(callOf({ ...cut, outcome: 'client_closed', streams: true }))
  }
  expect(figures.current()).toMatchObject({ calls: 90, firstTokenTimeoutRate: 60 / 90 })
  expect(figures.current().firstTokenP95).toBeUndefined()
})

test('what failed questions cost is part of the cost of the successful ones', () => {
  const figures = new Figures()
  const cost = { amount: 1, currency: 'USD', estimated: false }
  const told = { operation: 'answer', feature: undefined, tenant: undefined, error: undefined }
  const answer = {
    text: '',
    complete: true,
    degraded: false,
    rung: 'big',
    reason: undefined,
    attempts: [],
    usage: { estimated: false },
    cost,
    timings: { connect: undefined, firstToken: undefined, total: 1 },
    job: undefined,
  }
  figures.addAnswered({ ...told, outcome: 'ok', answer, cost })
  figures.addAnswered({ ...told, outcome: 'upstream_error', answer: undefined, cost })
  expect(figures.current().costPerSuccess).toEqual({ USD: 2 })
})
