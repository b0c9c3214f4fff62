import { describe, expect, test } from 'vitest'
import {
  BudgetTooSmallError,
  ClientClosedError,
  currentDeadline,
  Deadline,
  operation,
  type OperationOptions,
  OperationTimeoutError,
  runWithDeadline,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

const never = (): Promise<never> => new Promise(() => undefined)

function underBudget(budget: number): { readonly clock: ManualClock; readonly deadline: Deadline } {
  const clock = new ManualClock()
  return { clock, deadline: Deadline.after(budget, { clock }) }
}

describe('an operation', () => {
  test('gives what its work gives, and notes what it was granted, spent and how it ended', async () => {
    const { clock, deadline } = underBudget(1_000)
    clock.advance(100)
    const options = { deadline, timeout: '500ms', floor: 50, reserve: 200 }
    const value = await operation('retrieve', options, async ({ timeout }) => {
      await Promise.resolve()
      clock.advance(120)
      return timeout
    })
    expect(value).toBe(500)
    expect(deadline.ledger.entries).toEqual([
      {
        name: 'retrieve',
        path: 'retrieve',
        start: 100,
        remaining: 900,
        granted: 500,
        floor: 50,
        reserve: 200,
        spent: 120,
        outcome: 'ok',
        source: 'local',
      },
    ])
  })

  test('may be synchronous', async () => {
    await expect(operation('count', {}, () => 3)).resolves.toBe(3)
  })

  test('rejects with what its work throws, at once or later', async () => {
    const { deadline } = underBudget(1_000)
    const failure = new Error('refused')
    const fail = (): never => {
      throw failure
    }
    await expect(operation('now', { deadline }, fail)).rejects.toBe(failure)
    await expect(operation('later', { deadline }, async () => Promise.reject(failure))).rejects.toBe(failure)
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['error', 'error'])
    expect(deadline.expired).toBe(false)
  })

  test('rejects also with an error that throws when anybody looks at its cause', async () => {
    const { deadline } = underBudget(1_000)
    const hostile = Object.defineProperty(new Error('hostile'), 'cause', {
      get: () => {
        throw new Error('looked at')
      },
    })
    await expect(operation('now', { deadline }, () => Promise.reject(hostile))).rejects.toBe(hostile)
    expect(deadline.ledger.entries[0]?.outcome).toBe('error')
  })

  test('settles at its own timeout although the work ignores its signal, and the request goes on', async () => {
    const { clock, deadline } = underBudget(1_000)
    let signal: AbortSignal | undefined
    const slow = operation('rerank', { deadline, timeout: 200 }, (scope) => {
      signal = scope.signal
      return never()
    })
    clock.advance(200)
    await expect(slow).rejects.toMatchObject({
      code: 'OPERATION_TIMEOUT',
      operation: 'rerank',
      budget: 200,
      remaining: 800,
    })
    expect(signal?.reason).toBeInstanceOf(OperationTimeoutError)
    expect(deadline.expired).toBe(false)
    expect(deadline.ledger.entries).toMatchObject([{ spent: 200, outcome: 'operation_timeout' }])
  })

  test('settles at the deadline, with the deadline’s reason, however long its own timeout is', async () => {
    const { clock, deadline } = underBudget(1_000)
    const slow = operation('generate', { deadline, timeout: '1m' }, never)
    clock.advance(1_000)
    await expect(slow).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await slow.catch((error: unknown) => expect(error).toBe(deadline.reason))
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'deadline_exceeded' }])
  })

  test('law 10: settles when the client leaves, and is counted apart from every failure', async () => {
    const { deadline } = underBudget(1_000)
    const gone = new ClientClosedError('the client went away')
    const work = operation('generate', { deadline }, never)
    deadline.cancel(gone)
    await expect(work).rejects.toBe(gone)
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'client_closed' }])
  })

  test('of which the result comes in the very tick in which time ran out has run out of time', async () => {
    const { clock, deadline } = underBudget(1_000)
    const late = operation('generate', { deadline }, async () => {
      await Promise.resolve()
      clock.block(1_000)
      return 'late'
    })
    await expect(late).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'deadline_exceeded' }])
  })

  test('that fails in the very tick in which time ran out has run out of time too', async () => {
    const { clock, deadline } = underBudget(1_000)
    let signal: AbortSignal | undefined
    const late = operation('generate', { deadline, timeout: 300 }, (scope) => {
      signal = scope.signal
      clock.block(300)
      throw new Error('reset')
    })
    await expect(late).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
    expect(signal?.aborted).toBe(true)
  })

  test('law 2: whose work went well never aborts its signal, not even long after', async () => {
    const { clock, deadline } = underBudget(1_000)
    const signal = await operation('retrieve', { deadline, timeout: 200 }, (scope) => scope.signal)
    clock.advance(5_000)
    expect(deadline.expired).toBe(true)
    expect(signal.aborted).toBe(false)
  })

  test('whose work goes on in the background still ends that with the request', async () => {
    const { deadline } = underBudget(1_000)
    const child = await operation('stream', { deadline }, (scope) => scope.deadline.child({}))
    const { signal } = child
    deadline.cancel()
    expect(signal.reason).toBe(deadline.reason)
  })
})

describe('an operation is not begun', () => {
  async function refused(deadline: Deadline, options: OperationOptions): Promise<unknown> {
    let begun = false
    const failure = await operation('generate', { deadline, ...options }, () => {
      begun = true
    }).catch((error: unknown) => error)
    expect(begun).toBe(false)
    return failure
  }

  test('with less than its floor', async () => {
    const { clock, deadline } = underBudget(1_000)
    clock.advance(300)
    expect(await refused(deadline, { floor: 701 })).toBeInstanceOf(BudgetTooSmallError)
    expect(await refused(deadline, { floor: { current: () => 900 } })).toMatchObject({
      message: 'generate needs 900 ms, 700 ms of 1000 ms are left',
      operation: 'generate',
      remaining: 700,
    })
    await expect(operation('generate', { deadline, floor: 700 }, () => 'begun')).resolves.toBe('begun')
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
      'short_circuited',
      'short_circuited',
      'ok',
    ])
  })

  test('but is, under a learned floor that has not learned anything yet', async () => {
    const { deadline } = underBudget(1_000)
    for (const learned of [Number.NaN, -1]) {
      const floor = { current: () => learned }
      await expect(operation('x', { deadline, floor, reserve: 10 }, () => 'begun')).resolves.toBe('begun')
    }
    expect(deadline.ledger.entries).toMatchObject([{ floor: 0 }, { floor: 0 }])
  })

  test('with less than its floor left after the reserve', async () => {
    const { deadline } = underBudget(1_000)
    expect(await refused(deadline, { floor: 200, reserve: 801 })).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    expect(await refused(deadline, { reserve: '2s' })).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    expect(await refused(deadline, { reserve: Infinity })).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    const granted = await operation(
      'generate',
      { deadline, floor: 200, reserve: 800 },
      ({ timeout }) => timeout,
    )
    expect(granted).toBe(200)
  })

  test('with nothing left after a reserve that takes it all', async () => {
    const { deadline } = underBudget(1_000)
    const failure = await refused(deadline, { reserve: 1_000 })
    expect(failure).toMatchObject({ code: 'OPERATION_TIMEOUT', budget: 0 })
  })

  test('under a deadline that is over: it rejects with that one’s reason', async () => {
    const { deadline } = underBudget(1_000)
    deadline.cancel(new ClientClosedError('gone'))
    expect(await refused(deadline, { timeout: 10, reserve: '5s' })).toBe(deadline.reason)
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'client_closed' }])
  })

  test('with a signal that aborted before', async () => {
    const failure = await refused(Deadline.after('1s'), { signal: AbortSignal.abort('stop') })
    expect(failure).toMatchObject({ code: 'CANCELLED', cause: 'stop' })
  })

  test('and settles all the same when its own timeout is nothing at all', async () => {
    await expect(operation('x', { timeout: 0 }, never)).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  })
})

describe('the deadline of an operation', () => {
  test('is the ambient one, and in its work the operation’s own', async () => {
    const { deadline } = underBudget(1_000)
    await runWithDeadline(deadline, () =>
      operation('outer', { timeout: 500 }, async (outer) => {
        expect(currentDeadline()).toBe(outer.deadline)
        await Promise.resolve()
        expect(currentDeadline()).toBe(outer.deadline)
        expect(outer.deadline.ledger).toBe(deadline.ledger)
        await operation('inner', {}, (inner) => expect(inner.timeout).toBe(500))
        expect(currentDeadline()).toBe(outer.deadline)
      }),
    )
    expect(currentDeadline()).toBeUndefined()
    expect(deadline.ledger.entries.map(({ path }) => path)).toEqual(['outer', 'outer.inner'])
  })

  test('is the given one before the ambient one', async () => {
    const { deadline } = underBudget(1_000)
    const other = Deadline.after('2s')
    await runWithDeadline(deadline, () => operation('x', { deadline: other }, () => undefined))
    expect(deadline.ledger.entries).toHaveLength(0)
    expect(other.ledger.entries).toHaveLength(1)
  })

  test('without an ambient one is its own timeout alone', async () => {
    const scope = await operation('job', { timeout: '2s', floor: '5s' }, ({ timeout, deadline }) => ({
      timeout,
      budget: deadline.budget,
    }))
    expect(scope).toEqual({ timeout: 2_000, budget: 2_000 })
    expect(await operation('job', {}, ({ timeout }) => timeout)).toBe(Infinity)
  })

  test('names operations within operations by the way to them', async () => {
    const { deadline } = underBudget(1_000)
    await operation('generate', { deadline }, async (outer) => {
      await Promise.all([
        operation('embed', {}, () => operation('fetch', {}, () => undefined)),
        operation('rerank', { deadline: outer.deadline.child({ timeout: 10 }) }, () => undefined),
      ])
    })
    await operation('after', { deadline }, () => undefined)
    expect(deadline.ledger.entries.map(({ path }) => path)).toEqual([
      'generate',
      'generate.embed',
      'generate.embed.fetch',
      'generate.rerank',
      'after',
    ])
  })
})
