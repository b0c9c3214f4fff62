/** More digits than this and a double could not hold the number exactly. */
const exactDigits = 15

/**
 * Reads the first `end` characters as a whole number; `undefined` if there is none, if anything but an
 * ASCII digit is among them or if they are more than 15.
 *
 * A loop over character codes costs less than half of a regular expression, and every request pays it.
 */
export function parseDigits(value: string, end: number = value.length): number | undefined {
  if (end < 1 || end > exactDigits) return undefined
  let number = 0
  for (let index = 0; index < end; index += 1) {
    const digit = value.charCodeAt(index) - 48
    // Written so that NaN (past the end) fails as well.
    if (!(digit >= 0 && digit <= 9)) return undefined
    number = number * 10 + digit
  }
  return number
}

/** Milliseconds in at most ten digits: rounded up, so never 0; more than fits becomes the most that does. */
export function formatMilliseconds(ms: number): string {
  return String(Math.min(Math.ceil(ms), 9_999_999_999))
}
