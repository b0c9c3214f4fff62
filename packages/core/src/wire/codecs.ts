import type { Codec, CodecName } from './codec.ts'
import { connectTimeout } from './connect.ts'
import { envoyExpectedTimeout } from './envoy.ts'
import { grpcTimeout } from './grpc.ts'
import { preferWait } from './prefer-wait.ts'
import { requestDeadlineMs, requestTimeoutMs } from './request-ms.ts'
import { serverTimeout } from './server-timeout.ts'
import { stainlessTimeout } from './stainless.ts'
import { requestDeadline, requestTimeout } from './x-request.ts'

/** Every codec by its name. */
export const codecs: Readonly<Record<CodecName, Codec>> = Object.freeze({
  'x-request-deadline': requestDeadline,
  'x-request-timeout-ms': requestTimeout,
  'grpc-timeout': grpcTimeout,
  'connect-timeout-ms': connectTimeout,
  'x-envoy-expected-rq-timeout-ms': envoyExpectedTimeout,
  'request-deadline-ms': requestDeadlineMs,
  'request-timeout-ms': requestTimeoutMs,
  'x-stainless-timeout': stainlessTimeout,
  'x-server-timeout': serverTimeout,
  'prefer-wait': preferWait,
})

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
