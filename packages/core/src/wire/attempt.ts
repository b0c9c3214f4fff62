import type { HeaderSource } from './decode.ts'

/** Which attempt of the same work a request stands for; in lower case. */
export const attemptHeader = 'x-request-attempt'

/** More than anybody retries; what a peer sends beyond it is no number of attempts. */
const mostAttempts = 1000
/** Of a header that came as an array so many values are looked at. */
const mostValues = 64

/**
 * The attempt that a request says it is, from 1; the highest one if it says several, and 1 if it says nothing that can be
 * read. Never throws.
 */
export function decodeAttempt(headers: HeaderSource): number {
  const raw = headers[attemptHeader]
  if (raw === undefined || !Object.hasOwn(headers, attemptHeader)) return 1
  let highest = 1
  const values: readonly unknown[] = Array.isArray(raw) ? raw.slice(0, mostValues) : [raw]
  for (const value of values) {
    if (typeof value !== 'string') continue
    for (const part of value.slice(0, 64).split(',')) {
      const attempt = /^\s*\d{1,4}\s*$/.test(part) ? Number(part) : 0
      if (attempt > highest && attempt <= mostAttempts) highest = attempt
    }
  }
  return highest
}

/** The header that tells the next hop; none for a first attempt. */
export function encodeAttempt(attempt: number): Record<string, string> {
  return attempt > 1 ? { [attemptHeader]: String(Math.min(attempt, mostAttempts)) } : {}
}
