import type { CodecName } from './codec.ts'

/** The codecs read by default. */
export const defaultAccept: readonly CodecName[] = Object.freeze<CodecName[]>([
  'x-request-deadline',
  'x-request-timeout-ms',
  'grpc-timeout',
  'connect-timeout-ms',
  'x-envoy-expected-rq-timeout-ms',
])

/** The codecs written by default. */
export const defaultEmit: readonly CodecName[] = Object.freeze<CodecName[]>([
  'x-request-deadline',
  'x-request-timeout-ms',
])
