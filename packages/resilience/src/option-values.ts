import { type Duration, parseDuration } from '@timebudget/core'

/**
 * Milliseconds in a duration that must not be 0.
 * @throws TypeError that names `option`.
 */
export function durationAboveZero(duration: Duration, option: string): number {
  const milliseconds = parseDuration(duration, option)
  if (milliseconds > 0) return milliseconds
  throw new TypeError(`${option}: expected a duration above 0`)
}

/**
 * As `durationAboveZero`, but not for ever either.
 * @throws TypeError that names `option`.
 */
export function finiteDurationAboveZero(duration: Duration, option: string): number {
  const milliseconds = durationAboveZero(duration, option)
  if (milliseconds < Infinity) return milliseconds
  throw new TypeError(`${option}: expected a finite duration`)
}

/**
 * An integer of at least 1.
 * @throws TypeError that names `option`.
 */
export function positiveInteger(value: number, option: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new TypeError(`${option}: expected an integer of at least 1, got ${String(value)}`)
}

/**
 * A function, or nothing.
 * @throws TypeError that names `option`.
 */
export function optionalFunction<F>(value: F | undefined, option: string): F | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw new TypeError(`${option}: expected a function, got ${typeof value}`)
}

/**
 * A text with something in it.
 * @throws TypeError that names `option`.
 */
export function textOf(value: string, option: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(
    `${option}: expected a text that is not empty, got ${value === '' ? "''" : typeof value}`,
  )
}

/**
 * An object that has these methods.
 * @throws TypeError that names `option`.
 */
export function withMethods<T extends object>(
  value: T,
  option: string,
  methods: readonly (keyof T & string)[],
): T {
  if (
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof value[name] === 'function')
  )
    return value
  throw new TypeError(
    `${option}: expected an object with ${methods.map((name) => `${name}()`).join(' and ')}`,
  )
}
