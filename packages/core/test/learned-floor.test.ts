import { describe, expect, test } from 'vitest'
import { Deadline, type FinishedWork, type FloorSource, operation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

class NotingFloor implements FloorSource {
  readonly asked: (number | undefined)[] = []
  readonly told: FinishedWork[] = []
  readonly #needed: number

  constructor(needed: number) {
    this.#needed = needed
  }

  current(remaining?: number): number {
    this.asked.push(remaining)
    return this.#needed
  }

  record(end: FinishedWork): void {
    this.told.push(end)
  }
}

function underBudget(budget: number): { readonly clock: ManualClock; readonly deadline: Deadline } {
  const clock = new ManualClock()
  return { clock, deadline: Deadline.after(budget, { clock }) }
}

describe('a learned floor', () => {
  test('is asked once at a start, with what the work itself would have', async () => {
    const { deadline } = underBudget(1_000)
    const floor = new NotingFloor(300)
    await operation('retrieve', { deadline, floor, reserve: 100 }, () => 'found')
    expect(floor.asked).toEqual([900])
    expect(deadline.ledger.entries[0]?.floor).toBe(300)
  })

  test('is compared with the time that the work itself would get', async () => {
    const { deadline } = underBudget(1_000)
    const floor = new NotingFloor(300)
    const options = { deadline, floor, timeout: 200 }
    await expect(operation('retrieve', options, () => 'found')).rejects.toThrow('needs 300 ms, 200 ms')
    expect(floor.asked).toEqual([200])
  })

  test('is told how long the work took and how it ended', async () => {
    const { clock, deadline } = underBudget(1_000)
    const floor = new NotingFloor(0)
    await operation('retrieve', { deadline, floor }, () => clock.advance(120))
    const late = operation('retrieve', { deadline, floor, timeout: 200 }, () => new Promise(() => undefined))
    clock.advance(200)
    await expect(late).rejects.toThrow('retrieve took longer')
    expect(floor.told).toEqual([
      { spent: 120, outcome: 'ok' },
      { spent: 200, outcome: 'operation_timeout' },
    ])
  })

  test('learns nothing of work that was not begun', async () => {
    const { deadline } = underBudget(1_000)
    const floor = new NotingFloor(2_000)
    await expect(operation('retrieve', { deadline, floor }, () => 'found')).rejects.toThrow('needs 2000 ms')
    expect(floor.told).toEqual([])
  })

  test('hurts nobody when it fails to learn', async () => {
    const floor: FloorSource = {
      current: () => 0,
      record() {
        throw new Error('full')
      },
    }
    expect(await operation('retrieve', { floor, timeout: 1_000 }, () => 'found')).toBe('found')
  })
})

describe("an operation's attempt", () => {
  test('is known to what is called in it, and never less than that of the request around it', async () => {
    const { deadline } = underBudget(1_000)
    expect(deadline.attempt).toBe(1)
    const seen: number[] = []
    await operation('generate', { deadline, attempt: 3 }, async (outer) => {
      seen.push(outer.deadline.attempt)
      await operation('embed', { deadline: outer.deadline, attempt: 1 }, (inner) => {
        seen.push(inner.deadline.attempt)
      })
    })
    expect(seen).toEqual([3, 3])
  })
})
