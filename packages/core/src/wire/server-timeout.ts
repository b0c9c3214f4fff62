import type { Codec } from './codec.ts'
import { formatSeconds, parseSeconds } from './seconds.ts'

/** `X-Server-Timeout` of Google's APIs: seconds, whole in most of its clients and decimal in some; 0 says nothing. */
export const serverTimeout: Codec = {
  name: 'x-server-timeout',
  header: 'x-server-timeout',
  kind: 'relative',
  ownsList: false,
  parse: parseSeconds,
  format: formatSeconds,
}
