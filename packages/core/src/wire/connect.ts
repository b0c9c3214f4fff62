import type { Codec } from './codec.ts'
import { formatMilliseconds } from './integer.ts'
import { parseTimeoutMs } from './x-request.ts'

/** `Connect-Timeout-Ms` of the Connect protocol: at most 10 digits; 0 means that nothing is left. */
export const connectTimeout: Codec = {
  name: 'connect-timeout-ms',
  header: 'connect-timeout-ms',
  kind: 'relative',
  ownsList: false,
  parse: parseTimeoutMs,
  format: formatMilliseconds,
}
