import type { Codec } from './codec.ts'
import { formatMilliseconds, parseDigits } from './integer.ts'

/** `X-Envoy-Expected-Rq-Timeout-Ms`: what the proxy will wait, in milliseconds; 0 means without limit. */
export const envoyExpectedTimeout: Codec = {
  name: 'x-envoy-expected-rq-timeout-ms',
  header: 'x-envoy-expected-rq-timeout-ms',
  kind: 'relative',
  ownsList: false,
  parse(value) {
    const ms = parseDigits(value)
    return ms === 0 ? Infinity : ms
  },
  format: formatMilliseconds,
}
