import { formatEpoch, parseEpoch } from './absolute.ts'
import type { Codec } from './codec.ts'
import { formatMilliseconds, parseDigits } from './integer.ts'

/** `X-Request-Deadline`: the moment itself, 13 digits of Unix epoch milliseconds. */
export const requestDeadline: Codec = {
  name: 'x-request-deadline',
  header: 'x-request-deadline',
  kind: 'absolute',
  ownsList: false,
  parse: parseEpoch,
  format: formatEpoch,
}

/** `X-Request-Timeout-Ms`: milliseconds left when sent, 1 to 10 digits; 0 means that nothing is left. */
export const requestTimeout: Codec = {
  name: 'x-request-timeout-ms',
  header: 'x-request-timeout-ms',
  kind: 'relative',
  ownsList: false,
  parse: parseTimeoutMs,
  format: formatMilliseconds,
}

/** Reads 1 to 10 digits of milliseconds. */
export function parseTimeoutMs(value: string): number | undefined {
  return value.length <= 10 ? parseDigits(value) : undefined
}
