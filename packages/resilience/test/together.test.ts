import {
  ClientClosedError,
  Deadline,
  operation,
  operationFinished,
  operationStarted,
  queueJudged,
  retryDecided,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { breaker, DeadlineQueue, Latency, LatencyBook, retry, RetryBudget } from '../src/index.ts'
import { networkError } from './support/retrying.ts'
import { seededRandom } from './support/seeded-random.ts'

const calls = 2_000

/** A count for each thing. */
class Counts<Key> extends Map<Key, number> {
  note(key: Key): void {
    this.set(key, (this.get(key) ?? 0) + 1)
  }
}

test('law 4: a queue in a queue in a retry in a breaker in an operation: all is given back, and told once', async () => {
  const clock = new ManualClock()
  const random = seededRandom(11)
  const gpu = new DeadlineQueue({ name: 'gpu', slots: 8, estimate: new LatencyBook({ clock }), clock })
  const cpu = new DeadlineQueue({ name: 'cpu', slots: 3, clock })
  const around = breaker('model', { failures: 40, halfOpenAfter: 20, clock })
  const budget = new RetryBudget({ ratio: 1, minPerSecond: 1000, clock })
  const latency = new Latency({ clock })
  const started = new Counts<unknown>()
  const finished = new Counts<unknown>()
  const ends = new Counts<string>()
  const judged = new Counts<string>()
  const stops = new Counts<string>()
  const warn = vi.spyOn(process, 'emitWarning')
  for (const end of [
    operationStarted.subscribe(({ entry }) => started.note(entry)),
    operationFinished.subscribe(({ entry }) => finished.note(entry)),
    queueJudged.subscribe(({ decision }) => judged.note(decision)),
    retryDecided.subscribe(({ stop }) => stops.note(stop ?? 'again')),
    () => warn.mockRestore(),
  ])
    onTestFinished(end)
  let most = 0

  const asleep = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => clock.wakeAfter(milliseconds, resolve))

  async function work({ signal }: { readonly signal: AbortSignal }): Promise<unknown> {
    most = Math.max(most, gpu.running)
    const chance = random()
    if (chance < 0.15) throw networkError('ECONNRESET')
    if (chance < 0.25) return { status: 503, headers: { 'retry-after-ms': '5' } }
    if (chance < 0.3) return Promise.reject()
    if (chance < 0.4) return new Promise(() => undefined)
    if (chance < 0.6) {
      return new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        clock.wakeAfter(random() * 80, () => resolve('done'))
      })
    }
    await asleep(random() * 40)
    return 'done'
  }

  const left = new AbortController()
  async function call(index: number): Promise<void> {
    const own = new AbortController()
    const signal = index % 3 === 0 ? left.signal : own.signal
    const deadline = Deadline.after(random() < 0.1 ? random() * 2 : random() * 300, { clock, signal })
    const after = random() * 150
    const fate = random()
    if (fate < 0.2) clock.wakeAfter(after, () => own.abort('stop'))
    else if (fate < 0.4) clock.wakeAfter(after, () => deadline.cancel(new ClientClosedError('left')))
    const inSlot = (scope: { readonly signal: AbortSignal }): Promise<unknown> =>
      random() < 0.3 ? cpu.run(work) : work(scope)
    const ask = (): Promise<unknown> =>
      gpu.run(inSlot, {
        operation: `work ${index % 5}`,
        class: `class ${index % 100}`,
        priority: index % 3,
        floor: index % 7 === 0 ? 100 : 0,
      })
    const hedge = { after: index % 2 === 0 ? 10 : latency }
    await operation('call', { deadline }, () =>
      around.run(() => retry(ask, { backoff: { initial: 3 }, hedge, budget, signal, clock, random })),
    ).then(
      () => ends.note('answered'),
      (error: unknown) => ends.note(error === undefined ? 'nothing' : 'failed'),
    )
    deadline.settle()
  }

  const all: Promise<void>[] = []
  for (let moment = 0; moment < 1_000; moment += 1) {
    for (let come = 0; come < 4 && all.length < calls; come += 1) all.push(call(all.length))
    clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(all)

  expect(most).toBe(8)
  expect([gpu.running, gpu.waiting, cpu.running, cpu.waiting]).toEqual([0, 0, 0, 0])
  expect(getEventListeners(left.signal, 'abort')).toHaveLength(0)
  expect([...ends.values()].reduce((sum, count) => sum + count, 0)).toBe(calls)
  // every way there is has been gone
  expect(ends.size).toBe(3)
  expect([...judged.keys()].toSorted()).toEqual(['admitted', 'left', 'shed'])
  expect([...stops.keys()]).toEqual(
    expect.arrayContaining(['again', 'no_time', 'cancelled', 'not_retryable']),
  )
  expect(new Set(started.values())).toEqual(new Set([1]))
  expect(new Set(finished.values())).toEqual(new Set([1]))
  for (const entry of started.keys()) expect(finished.has(entry)).toBe(true)
  expect(warn).not.toHaveBeenCalled()
})
