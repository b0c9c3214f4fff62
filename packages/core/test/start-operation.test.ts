import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import {
  Deadline,
  operationFinished,
  type OperationFinished,
  operationStarted,
  type RunningOperation,
  startOperation,
  type TimeBudgetError,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

const subscriptions: (() => void)[] = []
afterEach(() => {
  for (const unsubscribe of subscriptions.splice(0)) unsubscribe()
})

function finishedOperations(): OperationFinished[] {
  const finished: OperationFinished[] = []
  subscriptions.push(operationFinished.subscribe((event) => finished.push(event)))
  return finished
}

function underBudget(budget: number): { readonly clock: ManualClock; readonly deadline: Deadline } {
  const clock = new ManualClock()
  return { clock, deadline: Deadline.after(budget, { clock }) }
}

test('law 4: an operation whose floor throws leaves nothing behind', () => {
  const { deadline } = underBudget(1_000)
  const controller = new AbortController()
  const floor = {
    current(): never {
      throw new Error('broken')
    },
  }
  const start = (): unknown => startOperation('search', { deadline, signal: controller.signal, floor })
  expect(start).toThrow('broken')
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
})

describe('an operation that was started', () => {
  test('ends once: the first word counts', () => {
    const finished = finishedOperations()
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    clock.advance(100)
    expect(running.end('degraded')).toBeUndefined()
    clock.advance(100)
    expect(running.end()).toBeUndefined()
    expect(running.fail(new Error('reset'))).toMatchObject({ message: 'reset' })
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'degraded', spent: 100 }])
    expect(finished).toHaveLength(1)
  })

  test('that ended well stays so, whoever asks again after the deadline', () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    running.end()
    clock.advance(5_000)
    const failure = new Error('socket closed')
    expect(running.end()).toBeUndefined()
    expect(running.fail(failure)).toBe(failure)
  })

  test('fails with its error and that one’s outcome', () => {
    const finished = finishedOperations()
    const { deadline } = underBudget(1_000)
    const failure = new Error('refused')
    expect(startOperation('call', { deadline }).fail(failure)).toBe(failure)
    expect(finished).toMatchObject([{ error: failure, entry: { outcome: 'error' } }])
  })

  test('that the deadline ended first says why, each time it is asked', () => {
    const finished = finishedOperations()
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    clock.advance(1_000)
    expect(running.end()).toBe(deadline.reason)
    expect(running.fail(new Error('reset'))).toBe(deadline.reason)
    expect(finished).toMatchObject([{ error: deadline.reason, entry: { outcome: 'deadline_exceeded' } }])
  })

  test('and ends after its time, before its timer has run, has been ended by the deadline', () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    const finished = finishedOperations()
    const { signal } = running
    clock.block(1_000)
    expect(running.end()).toBe(deadline.reason)
    expect(finished).toMatchObject([{ error: deadline.reason, entry: { outcome: 'deadline_exceeded' } }])
    expect(signal.aborted).toBe(true)
  })

  test('tells at its end, before its signal aborts, and once', () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline, timeout: 100 })
    const told: string[] = []
    running.signal.addEventListener('abort', () => told.push('signal'))
    running.onCutOff((reason) => told.push(reason.code))
    clock.advance(5_000)
    expect(told).toEqual(['OPERATION_TIMEOUT', 'signal'])
  })

  test('tells of no end that it came to by itself', () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    const told: TimeBudgetError[] = []
    running.onCutOff((reason) => told.push(reason))
    running.end()
    deadline.cancel()
    clock.advance(5_000)
    expect(told).toEqual([])
  })

  test('tells whoever asks only after it was cut off', () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('stream', { deadline })
    clock.advance(1_000)
    const told: TimeBudgetError[] = []
    running.onCutOff((reason) => told.push(reason))
    expect(told).toEqual([deadline.reason])
  })
})

describe('an operation is not started', () => {
  test('if it would be over as it starts', () => {
    const started: unknown[] = []
    subscriptions.push(operationStarted.subscribe((event) => started.push(event)))
    const { deadline } = underBudget(1_000)
    const signal = AbortSignal.abort('stop')
    expect(() => startOperation('x', { deadline, signal })).toThrow('cancelled')
    expect(() => startOperation('x', { deadline, timeout: 0 })).toThrow('took longer than its 0 ms')
    expect(() => startOperation('x', { deadline, reserve: 1_000 })).toThrow('took longer than its 0 ms')
    expect(started).toEqual([])
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
      'cancelled',
      'operation_timeout',
      'operation_timeout',
    ])
  })
})

describe('work run in an operation', () => {
  test('that ends the operation itself still settles', async () => {
    const ended = startOperation('x', { timeout: '1m' })
    await expect(ended.run(() => ended.end('degraded') ?? 'value')).resolves.toBe('value')
    expect(ended.entry.outcome).toBe('degraded')
    const failed = startOperation('x', { timeout: '1m' })
    const failure = new Error('refused')
    await expect(failed.run(() => Promise.reject(failed.fail(failure)))).rejects.toBe(failure)
  })

  test('that ends the operation itself too late gets the deadline’s reason', async () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('x', { deadline })
    const work = running.run(() => {
      clock.block(1_000)
      running.end()
      return 'late'
    })
    await expect(work).rejects.toBe(deadline.reason)
  })

  test('is not begun once the deadline has ended the operation', async () => {
    const { clock, deadline } = underBudget(1_000)
    const running = startOperation('x', { deadline })
    clock.advance(1_000)
    let begun = false
    await expect(running.run(() => (begun = true))).rejects.toBe(deadline.reason)
    expect(begun).toBe(false)
  })

  test('does not hang when time runs out while the operation is being started', async () => {
    const { clock, deadline } = underBudget(1_000)
    subscriptions.push(operationStarted.subscribe(() => clock.block(1_000)))
    const running = startOperation('x', { deadline })
    await expect(running.run(() => new Promise(() => undefined))).rejects.toBe(deadline.reason)
    expect(running.entry).toMatchObject({ outcome: 'deadline_exceeded' })
  })
})

describe('law 4: an operation leaves no timer', () => {
  test('when it ends, fails, or is cut off', () => {
    const ways: ((running: RunningOperation) => unknown)[] = [
      (running) => running.end(),
      (running) => running.fail(new Error('refused')),
      (running) => running.deadline.cancel(),
    ]
    for (const end of ways) {
      const clock = new ManualClock()
      end(startOperation('x', { deadline: Deadline.after(Infinity, { clock }), timeout: 1_000 }))
      clock.advance(1_000)
      expect(clock.pendingTimers).toBe(0)
    }
  })
})
