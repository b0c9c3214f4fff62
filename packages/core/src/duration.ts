import ms from 'ms'

/** A length of time: a number is milliseconds, a string is what `ms` reads (`'1.5s'`, `'2m'`). */
export type Duration = number | string

/** The least remaining time an operation is worth starting with: fixed, or learned from what it really takes. */
export type Floor = Duration | { current(): number }

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
 * Milliseconds in a fixed floor, or what a learned floor says at this moment.
 * @throws TypeError that names `option` when it is unreadable; a learned floor that has no usable value counts as 0.
 */
export function parseFloor(floor: Floor, option: string): number {
  if (typeof floor !== 'object' || floor === null) return parseDuration(floor, option)
  const learned = floor.current()
  return learned >= 0 ? learned : 0
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
