import ms from 'ms'
import type { Outcome } from './outcome.ts'

/** A length of time: a number is milliseconds, a string is what `ms` reads (`'1.5s'`, `'2m'`). */
export type Duration = number | string

/** The least remaining time an operation is worth starting with: fixed, or learned from what it really takes. */
export type Floor = Duration | FloorSource

/** A floor that is found anew at every start. */
export interface FloorSource {
  /** Milliseconds; with what is `remaining`, the least that this very start needs: 0 lets it begin. */
  current(remaining?: number): number
  /** Told how each piece of work that began under it has ended; `spent` in milliseconds. */
  record?(end: FinishedWork): void
}

/** How a piece of work has ended. */
export interface FinishedWork {
  /** Milliseconds. */
  readonly spent: number
  readonly outcome: Outcome
}

/**
 * Milliseconds in a duration, `Infinity` included.
 * @throws TypeError that names `option` when the duration is NaN, negative or unreadable.
 */
export function parseDuration(duration: Duration, option: string): number {
  const milliseconds = typeof duration === 'string' ? readText(duration) : duration
  if (typeof milliseconds === 'number' && milliseconds >= 0) return milliseconds
  throw new TypeError(
    `${option}: expected a duration that is not negative, such as 1500 or '1.5s', got ${describe(duration)}`,
  )
}

/**
 * Milliseconds in a fixed floor, or what a learned floor says at this moment, to a start with so much `remaining`.
 * @throws TypeError that names `option` when it is unreadable; a learned floor that has no usable value counts as 0.
 */
export function parseFloor(floor: Floor, option: string, remaining?: number): number {
  if (!isLearned(floor)) return parseDuration(floor, option)
  const learned = floor.current(remaining)
  return learned >= 0 ? learned : 0
}

/** Tells a learned floor how work that began under it has ended. */
export function teachFloor(floor: Floor | undefined, end: FinishedWork): void {
  if (floor === undefined || !isLearned(floor)) return
  try {
    floor.record?.(end)
  } catch (error) {
    process.emitWarning(`a learned floor failed: ${String(error)}`, 'TimeBudgetWarning')
  }
}

/** Whether a floor is found anew at every start. */
export function isLearned(floor: Floor): floor is FloorSource {
  return typeof floor === 'object' && floor !== null
}

/** For clients, which want whole milliseconds and mostly take 0 for no limit: rounded down, but to no less than 1. */
export function wholeMilliseconds(milliseconds: number): number {
  return Math.max(Math.floor(milliseconds), Math.ceil(Math.min(milliseconds, 1)))
}

function readText(text: string): number {
  try {
    return ms(text as ms.StringValue)
  } catch {
    return Number.NaN // ms throws on '' and on more than 100 characters
  }
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
  return value === null || typeof value !== 'object' ? String(value) : typeof value
}
