import { getEventListeners } from 'node:events'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type * as core from '@timebudget/core'
import type * as server from '@timebudget/core/server'

let a: typeof core
let b: typeof core
let serverOfB: typeof server

beforeAll(async () => {
  a = await import('@timebudget/core')
  vi.resetModules()
  b = await import('@timebudget/core')
  serverOfB = await import('@timebudget/core/server')
})

const never = (): Promise<never> => new Promise(() => undefined)

test('there really are two copies', () => {
  expect(b.Deadline).not.toBe(a.Deadline)
  expect(new b.CancelledError('x')).not.toBeInstanceOf(a.TimeBudgetError)
})

describe('two copies in one process', () => {
  test('share the ambient deadline, in both directions', async () => {
    const deadline = a.Deadline.after('1m')
    await a.runWithDeadline(deadline, async () => {
      await Promise.resolve()
      expect(b.currentDeadline()).toBe(deadline)
      expect(b.detach(() => a.currentDeadline())).toBeUndefined()
      expect(b.bind(() => a.currentDeadline())()).toBe(deadline)
    })
    const other = b.Deadline.after('1m')
    expect(b.runWithDeadline(other, () => a.currentDeadline())).toBe(other)
  })

  test('know each other’s errors', () => {
    const error = new b.ClientClosedError('gone')
    expect(a.isTimeBudgetError(error)).toBe(true)
    expect(a.findTimeBudgetError(new Error('aborted', { cause: error }))).toBe(error)
    expect(a.outcomeOf(error)).toBe('client_closed')
  })

  test('know what is left behind each other’s signals', () => {
    const { signal } = b.Deadline.after('1m')
    expect(a.remainingOf(signal)).toBeGreaterThan(59_000)
    expect(a.remainingOf(signal)).toBeLessThanOrEqual(60_000)
  })
})

test('a call that one copy serves within a request of the other stands under its deadline', () => {
  const deadline = a.Deadline.after('1m')
  const call = a.runWithDeadline(
    deadline,
    () => new serverOfB.OpenCall({ path: '/any', headers: {} }, serverOfB.resolveCallOptions()),
  )
  const ended: unknown[] = []
  call.begin((reason) => ended.push(reason))
  expect(call.deadline.remaining()).toBeGreaterThan(59_000)
  const gone = new a.ClientClosedError('gone')
  deadline.cancel(gone)
  expect(ended).toEqual([gone])
})

describe('an operation of one copy under the deadline of the other', () => {
  test('ends with it, for the same reason', async () => {
    const deadline = a.Deadline.after('1m')
    const gone = new a.ClientClosedError('gone')
    let signal: AbortSignal | undefined
    const work = a.runWithDeadline(deadline, () =>
      b.operation('x', { timeout: '30s' }, (scope) => {
        signal = scope.signal
        return never()
      }),
    )
    deadline.cancel(gone)
    await expect(work).rejects.toBe(gone)
    expect(signal?.reason).toBe(gone)
  })

  test('ends when its time is up, for the very reason the other copy has', async () => {
    const deadline = a.Deadline.after(30)
    const work = b.operation('x', { deadline }, never)
    const error = await work.catch((reason: unknown) => reason)
    expect(error).toBe(deadline.reason)
    expect(error).toBeInstanceOf(a.DeadlineExceededError)
  })

  test('gets no more than is left of it, and is refused under its floor', async () => {
    const deadline = a.Deadline.after('1m')
    const granted = await b.operation('x', { deadline, timeout: '2m' }, ({ timeout }) => timeout)
    expect(granted).toBeGreaterThan(59_000)
    expect(granted).toBeLessThanOrEqual(60_000)
    await expect(b.operation('x', { deadline, floor: '2m' }, never)).rejects.toMatchObject({
      code: 'BUDGET_TOO_SMALL',
    })
  })

  test('is not begun once that is over, and says why it is', async () => {
    const deadline = a.Deadline.after('1m')
    deadline.cancel(new a.ClientClosedError('gone'))
    await expect(b.operation('x', { deadline }, never)).rejects.toBe(deadline.reason)
    const settled = a.Deadline.after('1m')
    settled.cancel(new a.ClientClosedError('gone'))
    settled.settle()
    expect(() => b.startOperation('x', { deadline: settled })).toThrow('gone')
  })

  test('sends what that would send', () => {
    const deadline = a.Deadline.at(Date.now() + 60_000)
    const { expiresAt } = deadline
    expect(b.startOperation('x', { deadline }).deadline.expiresAt).toBe(expiresAt)
    expect(b.Deadline.after('2m', { parent: deadline }).expiresAt).toBe(expiresAt)
  })

  test('shares a ledger with the others of its copy, and names those within it', async () => {
    const deadline = a.Deadline.after('1m')
    let entries: readonly { readonly path: string }[] = []
    await b.operation('one', { deadline }, () => undefined)
    await b.operation('two', { deadline }, async (scope) => {
      await b.operation('three', {}, () => undefined)
      entries = scope.deadline.ledger.entries
    })
    expect(entries.map(({ path }) => path)).toEqual(['one', 'two', 'two.three'])
  })

  test('law 4: does not keep it once it is settled', async () => {
    const kept = await (async () => {
      const deadline = a.Deadline.after('1h')
      await b.operation('x', { deadline }, ({ signal }) => signal.aborted)
      deadline.settle()
      return new WeakRef(deadline)
    })()
    for (let round = 0; round < 10 && kept.deref() !== undefined; round += 1) {
      await new Promise((resolve) => setImmediate(resolve))
      globalThis.gc?.()
    }
    expect(kept.deref()).toBeUndefined()
  })

  test('law 4: leaves one listener on it, however many operations there were', async () => {
    const deadline = a.Deadline.after('1m')
    for (let call = 0; call < 100; call += 1) await b.operation('x', { deadline }, () => undefined)
    expect(getEventListeners(deadline.signal, 'abort').length).toBe(1)
  })
})
