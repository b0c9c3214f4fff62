import { subscribe as subscribeRaw, unsubscribe as unsubscribeRaw } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  Deadline,
  operation,
  operationFinished,
  operationStarted,
  requestFinished,
  startOperation,
  workLate,
} from '@timebudget/core'

const warnings: Error[] = []
const unhandled: unknown[] = []
const noteWarning = (warning: Error): void => {
  warnings.push(warning)
}
const noteRejection = (reason: unknown): void => {
  unhandled.push(reason)
}
const subscriptions: (() => void)[] = []

beforeEach(() => {
  warnings.length = unhandled.length = 0
  process.on('warning', noteWarning)
  process.on('unhandledRejection', noteRejection)
})
afterEach(() => {
  for (const unsubscribe of subscriptions.splice(0)) unsubscribe()
  process.off('warning', noteWarning)
  process.off('unhandledRejection', noteRejection)
})

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('an event', () => {
  test('tells of the start and the end of an operation', async () => {
    const heard: string[] = []
    subscriptions.push(
      operationStarted.subscribe(({ entry }) => heard.push(`${entry.path} started ${entry.outcome}`)),
      operationFinished.subscribe(({ entry, error }) =>
        heard.push(`${entry.path} ${entry.outcome} ${String(error)}`),
      ),
    )
    const deadline = Deadline.after('1m')
    await operation('good', { deadline }, () => undefined)
    await operation('bad', { deadline }, () => Promise.reject(new Error('refused'))).catch(() => undefined)
    expect(heard).toEqual([
      'good started undefined',
      'good ok undefined',
      'bad started undefined',
      'bad error Error: refused',
    ])
  })

  test('tells of an operation that was refused only that it is over', () => {
    const heard: string[] = []
    subscriptions.push(
      operationStarted.subscribe(() => heard.push('started')),
      operationFinished.subscribe(({ entry, error }) => heard.push(`${entry.outcome} ${String(error)}`)),
    )
    expect(() => startOperation('x', { deadline: Deadline.after(0) })).toThrow('has passed')
    expect(heard).toEqual(['deadline_exceeded DeadlineExceededError: the deadline of 0 ms has passed'])
  })

  test('is on the channel of diagnostics_channel that bears its name', () => {
    const heard: unknown[] = []
    const listener = (payload: unknown): void => {
      heard.push(payload)
    }
    subscribeRaw('timebudget:operation.started', listener)
    const { deadline, entry } = startOperation('x', { timeout: '1m' })
    unsubscribeRaw('timebudget:operation.started', listener)
    expect(heard).toEqual([{ deadline, entry, around: expect.any(Function) }])
    deadline.settle()
  })

  test('is not built while nobody listens', () => {
    let built = 0
    const build = (): never => {
      built += 1
      throw new Error('built')
    }
    expect(workLate.observed).toBe(false)
    workLate.publish(build)
    expect(built).toBe(0)
    const unsubscribe = workLate.subscribe(() => undefined)
    expect(workLate.observed).toBe(true)
    unsubscribe()
    expect(workLate.observed).toBe(false)
    workLate.publish(build)
    expect(built).toBe(0)
  })

  test('of which the payload cannot be built is warned about and hurts nobody', async () => {
    const heard: unknown[] = []
    subscriptions.push(requestFinished.subscribe((event) => heard.push(event)))
    requestFinished.publish(() => {
      throw new Error('no status')
    })
    await nextTick()
    expect(heard).toEqual([])
    expect(warnings).toMatchObject([{ name: 'TimeBudgetWarning' }])
  })
})

describe('law 12: a listener', () => {
  const careless: (readonly [what: string, listener: () => unknown])[] = [
    [
      'throws',
      () => {
        throw new Error('careless')
      },
    ],
    ['rejects', () => Promise.reject(new Error('careless'))],
    [
      'throws what cannot be printed',
      () => {
        throw Object.assign(Object.create(null), { careless: true })
      },
    ],
  ]

  test.each(careless)('that %s is warned about and hurts nobody', async (_, listener) => {
    const heard: string[] = []
    subscriptions.push(
      operationFinished.subscribe(listener),
      operationFinished.subscribe(({ entry }) => heard.push(entry.path)),
    )
    await expect(operation('x', { timeout: '1m' }, () => 'value')).resolves.toBe('value')
    await nextTick()
    expect(heard).toEqual(['x'])
    expect(warnings).toHaveLength(1)
    expect(warnings).toMatchObject([
      {
        name: 'TimeBudgetWarning',
        message: expect.stringMatching(/^a listener of timebudget:operation.finished failed: .*careless/),
      },
    ])
    expect(unhandled).toEqual([])
  })

  test('that throws as an operation is cut off does not keep it from settling', async () => {
    subscriptions.push(
      operationFinished.subscribe(() => {
        throw new Error('careless')
      }),
    )
    const deadline = Deadline.after('1m')
    const cut = operation('x', { deadline }, () => new Promise(() => undefined))
    deadline.cancel('over')
    await expect(cut).rejects.toBe(deadline.reason)
  })
})
