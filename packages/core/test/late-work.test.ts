import { afterEach, beforeEach, expect, test } from 'vitest'
import { Deadline, operation, UpstreamError, type WorkLate, workLate } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

const late: WorkLate[] = []
const unhandled: unknown[] = []
const note = (reason: unknown): void => {
  unhandled.push(reason)
}
let unsubscribe = (): void => undefined

beforeEach(() => {
  late.length = unhandled.length = 0
  unsubscribe = workLate.subscribe((event) => late.push(event))
  process.on('unhandledRejection', note)
})
afterEach(() => {
  unsubscribe()
  process.off('unhandledRejection', note)
})

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Open {
  readonly clock: ManualClock
  readonly deadline: Deadline
  /** Settles the work, long after the operation. */
  resolve(value: unknown): void
  reject(error: unknown): void
  readonly signal: () => AbortSignal
}

/** An operation that has run into its timeout of 200 of 1,000 ms, while its work goes on. */
async function overdue(): Promise<Open> {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  let signal: AbortSignal | undefined
  let settle: Pick<Open, 'resolve' | 'reject'> | undefined
  const running = operation('rerank', { deadline, timeout: 200 }, (scope) => {
    signal = scope.signal
    return new Promise<unknown>((resolve, reject) => {
      settle = { resolve, reject }
    })
  })
  clock.advance(200)
  await expect(running).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  if (settle === undefined || signal === undefined) throw new Error('the work was not begun')
  const kept = signal
  return { clock, deadline, ...settle, signal: () => kept }
}

test('a result that comes late is swallowed and counted', async () => {
  const { clock, deadline, resolve } = await overdue()
  clock.advance(150)
  resolve('at last')
  await settled()
  expect(late).toMatchObject([{ kind: 'operation', operation: 'rerank', lateBy: 150 }])
  expect(deadline.ledger.entries).toMatchObject([{ outcome: 'operation_timeout', spent: 200 }])
})

test('a failure that comes late is swallowed and counted, and is no unhandled rejection', async () => {
  const { clock, reject } = await overdue()
  clock.advance(1)
  reject(new Error('reset'))
  await settled()
  expect(late).toMatchObject([{ lateBy: 1 }])
  expect(unhandled).toEqual([])
})

test('a rejection with nothing at all is late work too', async () => {
  const { reject } = await overdue()
  reject(undefined)
  await settled()
  expect(late).toHaveLength(1)
})

test('work that heeds its signal is not late: it fails with the reason, or with an error caused by it', async () => {
  const heeding = [
    (signal: AbortSignal): unknown => signal.reason,
    (signal: AbortSignal): Error => new DOMException('aborted', { name: 'AbortError', cause: signal.reason }),
    (signal: AbortSignal): Error =>
      new Error('request failed', { cause: new Error('aborted', { cause: signal.reason }) }),
  ]
  for (const errorOf of heeding) {
    const { reject, signal } = await overdue()
    reject(errorOf(signal()))
    await settled()
  }
  expect(late).toEqual([])
  expect(unhandled).toEqual([])
})

test('a late failure with an error of ours that is not the reason is late work', async () => {
  const { reject } = await overdue()
  reject(new UpstreamError('the search failed'))
  await settled()
  expect(late).toHaveLength(1)
})

test('late work is not counted twice, nor work in time at all', async () => {
  await operation('x', { timeout: '1m' }, () => 'in time')
  const { resolve, reject } = await overdue()
  resolve('late')
  reject(new Error('later'))
  await settled()
  expect(late).toHaveLength(1)
})
