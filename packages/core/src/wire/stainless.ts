import type { Codec } from './codec.ts'
import { formatSeconds, parseSeconds } from './seconds.ts'

/** `X-Stainless-Timeout` of generated API clients: seconds, truncated by some and decimal in others; 0 says nothing. */
export const stainlessTimeout: Codec = {
  name: 'x-stainless-timeout',
  header: 'x-stainless-timeout',
  kind: 'relative',
  ownsList: false,
  parse: parseSeconds,
  format: formatSeconds,
}
