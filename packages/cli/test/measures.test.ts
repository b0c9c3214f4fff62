import { expect, test } from 'vitest'
import { fairShares } from '../src/simulate/fair-share.ts'
import { measure } from '../src/simulate/measures.ts'
import type { Ending } from '../src/simulate/run.ts'

test('a fair share is an equal part, and what the modest leave goes to the others', () => {
  expect(fairShares(90, [100, 100])).toEqual([45, 45])
  expect(fairShares(90, [20, 100])).toEqual([20, 70])
  expect(fairShares(90, [100, 10, 25])).toEqual([55, 10, 25])
  expect(fairShares(90, [5, 10])).toEqual([5, 10])
})

interface Shape {
  readonly class: string
  readonly arrival: number
  readonly inTime: boolean
  readonly elapsed: number
  readonly slotTime: number
  readonly generate?: number
}

function ending({ class: kind, arrival, inTime, elapsed, slotTime, generate = slotTime }: Shape): Ending {
  const job = { index: 0, arrival, class: kind, retrieve: 10, rerank: 10, generate, estimate: generate }
  return { job, inTime, elapsed, slotTime }
}

const window = { from: 1_000, to: 3_000, budget: 500 }

test('goodput, waste and time to failure are those of the requests that arrived in the time that counts', () => {
  const measures = measure(
    [
      ending({ class: 'chat', arrival: 999, inTime: true, elapsed: 1, slotTime: 1_000 }),
      ending({ class: 'chat', arrival: 1_000, inTime: true, elapsed: 300, slotTime: 300 }),
      ending({ class: 'chat', arrival: 1_500, inTime: false, elapsed: 500, slotTime: 100 }),
      ending({ class: 'summary', arrival: 1_600, inTime: false, elapsed: 20, slotTime: 0 }),
      ending({ class: 'summary', arrival: 2_999, inTime: true, elapsed: 400, slotTime: 100 }),
      ending({ class: 'summary', arrival: 3_000, inTime: true, elapsed: 1, slotTime: 1_000 }),
    ],
    window,
  )
  expect(measures).toMatchObject({
    requests: 4,
    goodput: 1,
    inTime: 0.5,
    wastedSlotTime: 0.2,
    timeToFailure: { p50: 20, p99: 500 },
  })
})

test('work that no slot could finish in time is no need, and so no part of a fair share', () => {
  const { classes } = measure(
    [
      ending({ class: 'chat', arrival: 1_000, inTime: true, elapsed: 320, slotTime: 300 }),
      ending({ class: 'chat', arrival: 1_000, inTime: false, elapsed: 500, slotTime: 100, generate: 300 }),
      ending({ class: 'summary', arrival: 1_000, inTime: true, elapsed: 420, slotTime: 400 }),
      ending({ class: 'summary', arrival: 1_000, inTime: false, elapsed: 500, slotTime: 480, generate: 490 }),
    ],
    window,
  )
  expect(classes).toEqual([
    { name: 'chat', inTime: 0.5, usefulOfFairShare: 0.5, ofFairShare: 400 / 600 },
    { name: 'summary', inTime: 0.5, usefulOfFairShare: 1, ofFairShare: 880 / 400 },
  ])
})

test('where nothing failed there is no time to failure', () => {
  const { timeToFailure, wastedSlotTime } = measure([], window)
  expect(timeToFailure).toBeUndefined()
  expect(wastedSlotTime).toBe(0)
})
