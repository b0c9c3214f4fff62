import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  CancelledError,
  ClientClosedError,
  Deadline,
  DeadlineExceededError,
  deadlineBehind,
  operation,
  remainingOf,
  startOperation,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

const warnings: Error[] = []
const note = (warning: Error): void => {
  warnings.push(warning)
}

beforeEach(() => {
  warnings.length = 0
  process.on('warning', note)
})
afterEach(() => {
  process.off('warning', note)
})

/** Warnings are emitted a tick later. */
const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const listenersOn = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

describe('a deadline that follows a foreign signal', () => {
  test('is cancelled when that aborts first', () => {
    const clock = new ManualClock()
    const foreign = new AbortController()
    const deadline = Deadline.after('1s', { clock, signal: foreign.signal })
    const { signal } = deadline
    clock.advance(200)
    foreign.abort('stop')
    expect(signal.reason).toBeInstanceOf(CancelledError)
    expect(signal.reason).toMatchObject({ cause: 'stop', elapsed: 200 })
    clock.advance(5_000)
    expect(deadline.reason).toBe(signal.reason)
  })

  test('keeps its own reason when its time is up first', () => {
    const clock = new ManualClock()
    const foreign = new AbortController()
    const deadline = Deadline.after('1s', { clock, signal: foreign.signal })
    clock.block(1_000)
    foreign.abort('stop')
    expect(deadline.reason).toBeInstanceOf(DeadlineExceededError)
    expect(deadline.signal.reason).toBe(deadline.reason)
  })

  test('hears of it though nobody asked for its own signal', () => {
    const foreign = new AbortController()
    const deadline = Deadline.after(Infinity, { signal: foreign.signal })
    const child = deadline.child({})
    foreign.abort()
    expect(deadline.expired).toBe(true)
    expect(child.reason).toBe(deadline.reason)
  })

  test('has ended at once if that aborted before', () => {
    const deadline = Deadline.after('1s', { signal: AbortSignal.abort('gone') })
    expect(deadline.reason?.cause).toBe('gone')
    expect(deadline.signal.aborted).toBe(true)
  })

  test('takes a reason of ours as it is', () => {
    const gone = new ClientClosedError('the client went away')
    expect(Deadline.after('1s', { signal: AbortSignal.abort(gone) }).reason).toBe(gone)
  })

  test('that is another deadline’s ends for that one’s reason', () => {
    const clock = new ManualClock()
    const first = Deadline.after(100, { clock })
    const second = Deadline.after('1s', { clock, signal: first.signal })
    clock.advance(100)
    expect(second.reason).toBe(first.reason)
  })
})

describe('law 4: on a foreign signal', () => {
  test('200 deadlines put one listener and cause no warning', async () => {
    const foreign = new AbortController()
    const deadlines = Array.from({ length: 200 }, () => Deadline.after('1h', { signal: foreign.signal }))
    expect(listenersOn(foreign.signal)).toBe(1)
    foreign.abort()
    expect(deadlines.every(({ expired }) => expired)).toBe(true)
    expect(listenersOn(foreign.signal)).toBe(0)
    await nextTick()
    expect(warnings).toEqual([])
  })

  test('nothing is left once the last that follows it is settled, cancelled or over', () => {
    const clock = new ManualClock()
    const foreign = new AbortController()
    const follow = (): Deadline => Deadline.after('1s', { clock, signal: foreign.signal })
    const [settled, cancelled, passed] = [follow(), follow(), follow()]
    settled.settle()
    cancelled.cancel()
    expect(listenersOn(foreign.signal)).toBe(1)
    clock.advance(1_000)
    expect(listenersOn(foreign.signal)).toBe(0)
    expect(passed.expired).toBe(true)
    follow().settle()
    expect(listenersOn(foreign.signal)).toBe(0)
  })

  test('one that settles when another hears of the abort is not cancelled any more', () => {
    const foreign = new AbortController()
    const first = Deadline.after('1s', { signal: foreign.signal })
    const second = Deadline.after('1s', { signal: foreign.signal })
    first.signal.addEventListener('abort', () => second.settle())
    foreign.abort()
    expect(second.signal.aborted).toBe(false)
    expect(second.expired).toBe(false)
  })

  test('an operation that was refused leaves nothing', () => {
    const clock = new ManualClock()
    const foreign = new AbortController()
    const deadline = Deadline.after('1s', { clock })
    expect(() => startOperation('x', { deadline, floor: '2s', signal: foreign.signal })).toThrow(
      'x needs 2000 ms',
    )
    expect(listenersOn(foreign.signal)).toBe(0)
  })

  test('an operation that ended leaves nothing', async () => {
    const foreign = new AbortController()
    await operation('x', { signal: foreign.signal }, () => expect(listenersOn(foreign.signal)).toBe(1))
    expect(listenersOn(foreign.signal)).toBe(0)
  })
})

describe('our own signal', () => {
  test('takes 50 listeners, and 50 children with signals of their own, without a warning', async () => {
    const { signal } = Deadline.after('1m')
    for (let call = 0; call < 50; call += 1) signal.addEventListener('abort', () => undefined)
    const parent = Deadline.after('1m')
    const children = Array.from({ length: 50 }, () => parent.child({}).signal)
    expect(listenersOn(parent.signal)).toBe(0)
    await nextTick()
    expect(warnings).toEqual([])
    parent.cancel()
    expect(children.every(({ aborted }) => aborted)).toBe(true)
  })

  test('is one and the same each time it is asked for', () => {
    const deadline = Deadline.after('1s')
    expect(deadline.signal).toBe(deadline.signal)
  })

  test('knows what is left, and its deadline', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    clock.advance(300)
    expect(remainingOf(deadline.signal)).toBe(700)
    expect(deadlineBehind(deadline.signal)).toBe(deadline)
    deadline.cancel()
    expect(remainingOf(deadline.signal)).toBe(0)
  })

  test('is the only kind that does', () => {
    expect(remainingOf(new AbortController().signal)).toBeUndefined()
    expect(remainingOf(AbortSignal.abort())).toBeUndefined()
    expect(remainingOf(AbortSignal.any([Deadline.after('1s').signal]))).toBeUndefined()
  })

  test('aborts although an earlier listener throws, and so do those of the children', async () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    const child = parent.child({})
    const thrown: unknown[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.once('uncaughtException', (error) => thrown.push(error))
    try {
      const heard: string[] = []
      parent.signal.addEventListener('abort', () => {
        throw new Error('careless')
      })
      parent.signal.addEventListener('abort', () => heard.push('parent'))
      child.signal.addEventListener('abort', () => heard.push('child'))
      clock.advance(1_000)
      expect(heard).toEqual(['parent', 'child'])
      await nextTick()
      expect(thrown).toMatchObject([{ message: 'careless' }])
    } finally {
      for (const other of others) process.on('uncaughtException', other)
    }
  })
})
