import { formatEpoch, parseEpoch } from './absolute.ts'
import type { Codec } from './codec.ts'
import { formatMilliseconds } from './integer.ts'
import { parseTimeoutMs } from './x-request.ts'

/** `Request-Deadline-Ms`: Unix epoch milliseconds, as a vendor of language models has it. */
export const requestDeadlineMs: Codec = {
  name: 'request-deadline-ms',
  header: 'request-deadline-ms',
  kind: 'absolute',
  ownsList: false,
  parse: parseEpoch,
  format: formatEpoch,
}

/** `Request-Timeout-Ms`: its relative companion, milliseconds left when sent. */
export const requestTimeoutMs: Codec = {
  name: 'request-timeout-ms',
  header: 'request-timeout-ms',
  kind: 'relative',
  ownsList: false,
  parse: parseTimeoutMs,
  format: formatMilliseconds,
}
