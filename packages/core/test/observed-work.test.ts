import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Deadline, operation, operationStarted, startOperation, type WorkWrapper } from '../src/index.ts'

const observed = new AsyncLocalStorage<string>()
const stops: Array<() => void> = []

afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  vi.restoreAllMocks()
})

function wrapWorkIn(wrap: WorkWrapper): void {
  stops.push(operationStarted.subscribe(({ around }) => around(wrap)))
}

describe('an observer that runs the work of operations inside a context of its own', () => {
  test('is around the work and all that comes of it, and the deadline is inside', async () => {
    wrapWorkIn((work) => observed.run('span', work))

    const seen = await operation('retrieve', { timeout: '1s' }, async ({ deadline }) => {
      const before = observed.getStore()
      await new Promise(setImmediate)
      return [before, observed.getStore(), deadline.label]
    })

    expect(seen).toEqual(['span', 'span', 'retrieve'])
    expect(observed.getStore()).toBeUndefined()
  })

  test('is around the calls of clients, which have no function to run', () => {
    wrapWorkIn((work) => observed.run('span', work))
    const running = startOperation('fetch', { deadline: Deadline.after('1s') })

    expect(running.within(() => observed.getStore())).toBe('span')
    running.end()
  })

  test('shares it with others: the first is outermost', () => {
    const order: string[] = []
    for (const name of ['first', 'second']) {
      wrapWorkIn((work) => {
        order.push(name)
        work()
      })
    }

    startOperation('fetch', { deadline: Deadline.after('1s') }).within(() => order.push('work'))

    expect(order).toEqual(['first', 'second', 'work'])
  })

  const harmful: Record<string, WorkWrapper> = {
    'throws before': () => {
      throw new Error('an observer')
    },
    'throws after': (work) => {
      work()
      throw new Error('an observer')
    },
    'forgets the work': () => {},
    'repeats the work': (work) => {
      work()
      work()
    },
  }
  test.each(Object.keys(harmful))('hurts nobody where it %s', async (how) => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    wrapWorkIn(harmful[how] ?? (() => {}))
    const work = vi.fn<() => Promise<number>>(async () => 42)

    await expect(operation('retrieve', { timeout: '1s' }, work)).resolves.toBe(42)

    expect(work).toHaveBeenCalledTimes(1)
  })

  test('passes on what the work throws, at once and later', async () => {
    wrapWorkIn((work) => observed.run('span', work))
    const running = startOperation('fetch', { deadline: Deadline.after('1s') })
    const fail = (): never => {
      throw new RangeError('work')
    }

    expect(() => running.within(fail)).toThrow(RangeError)
    await expect(operation('retrieve', { timeout: '1s' }, fail)).rejects.toThrow(RangeError)
    running.end()
  })
})
