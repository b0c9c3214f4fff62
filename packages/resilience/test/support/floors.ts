import {
  type EventChannel,
  type FloorJudged,
  floorJudged,
  type FloorQuestionable,
  floorQuestionable,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { onTestFinished } from 'vitest'
import { type LearnedFloor, learnedFloor, type LearnedFloorOptions } from '../../src/index.ts'

let floors = 0

/** A floor under a name and a clock of its own, that acts as soon as it knows something. */
export function floorUnderTest(options: LearnedFloorOptions = {}): {
  floor: LearnedFloor
  clock: ManualClock
} {
  const clock = new ManualClock()
  floors += 1
  const defaults = { clock, mode: 'enforce', pressure: () => true, cap: null, explore: 0 } as const
  return { floor: learnedFloor(`work ${floors}`, { ...defaults, ...options }), clock }
}

/** Teaches it that its calls take that long. */
export function teach(floor: LearnedFloor, spent: number, { calls = 100 }: { calls?: number } = {}): void {
  for (let call = 0; call < calls; call += 1) floor.record({ spent, outcome: 'ok' })
}

/** What is judged from now on, until the test ends. */
export function judgements(): FloorJudged[] {
  return published(floorJudged)
}

/** What is found questionable from now on, until the test ends. */
export function questions(): FloorQuestionable[] {
  return published(floorQuestionable)
}

function published<T>(channel: EventChannel<T>): T[] {
  const payloads: T[] = []
  onTestFinished(channel.subscribe((payload) => payloads.push(payload)))
  return payloads
}
