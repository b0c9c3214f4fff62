import { parseDigits } from './integer.ts'

/** No client writes more: a double has 17 digits behind the point at most. */
const longestFraction = 20
/** Nanoseconds; what is finer is dropped, which can only make the deadline earlier. */
const usedFraction = 9

/**
 * Reads seconds with an optional decimal fraction (`5`, `2.5`) as milliseconds; 0 becomes `Infinity`,
 * because those who send seconds truncate them, and what is left of 900 ms would be 0.
 */
export function parseSeconds(value: string): number | undefined {
  const point = value.indexOf('.')
  const seconds = parseDigits(value, point === -1 ? value.length : point)
  if (seconds === undefined) return undefined
  if (point === -1) return noLimitIfZero(seconds * 1000)
  const fraction = parseFraction(value.slice(point + 1))
  return fraction === undefined ? undefined : noLimitIfZero(seconds * 1000 + fraction * 1000)
}

/** Whole seconds, rounded down; under one second there is nothing that could be sent. */
export function formatSeconds(ms: number): string | undefined {
  const seconds = Math.floor(ms / 1000)
  return seconds < 1 ? undefined : String(Math.min(seconds, 9_999_999_999))
}

function parseFraction(digits: string): number | undefined {
  if (digits.length < 1 || digits.length > longestFraction) return undefined
  const used = digits.slice(0, usedFraction)
  const unused = digits.slice(usedFraction)
  const number = parseDigits(used)
  if (number === undefined) return undefined
  if (unused !== '' && parseDigits(unused) === undefined) return undefined
  return number / 10 ** used.length
}

function noLimitIfZero(ms: number): number {
  return ms === 0 ? Infinity : ms
}
