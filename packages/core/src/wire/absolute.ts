import { parseDigits } from './integer.ts'

/** The first moment with 13 digits, September 2001; no deadline of today lies before it. */
const firstWithThirteenDigits = 1_000_000_000_000
const lastWithThirteenDigits = 9_999_999_999_999

/** Reads exactly 13 digits: 10 would be seconds, fewer a duration, and neither may be taken for a moment. */
export function parseEpoch(value: string): number | undefined {
  return value.length === 13 ? parseDigits(value) : undefined
}

/** Epoch ms rounded down, so that what is sent is never later than what is held. */
export function formatEpoch(epochMs: number): string | undefined {
  if (!(epochMs >= firstWithThirteenDigits)) return undefined
  return String(Math.min(Math.floor(epochMs), lastWithThirteenDigits))
}
