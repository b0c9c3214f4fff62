/** Every way of writing a deadline that this library reads and writes; each is named after its header. */
export type CodecName =
  | 'x-request-deadline'
  | 'x-request-timeout-ms'
  | 'grpc-timeout'
  | 'connect-timeout-ms'
  | 'x-envoy-expected-rq-timeout-ms'
  | 'request-deadline-ms'
  | 'request-timeout-ms'
  | 'x-stainless-timeout'
  | 'x-server-timeout'
  | 'prefer-wait'

/** How a deadline is written in one header. Pure: neither method throws or looks at a clock. */
export interface Codec {
  readonly name: CodecName
  /** The header's name in lower case. */
  readonly header: string
  /** `absolute`: a moment in Unix epoch ms. `relative`: ms left when sent. */
  readonly kind: 'absolute' | 'relative'
  /** `true` where the header is a list of its own, so that its commas do not mean that it came twice. */
  readonly ownsList: boolean
  /** Milliseconds or epoch ms; `Infinity` means that no limit is asked for; `undefined` means malformed. */
  parse(value: string): number | undefined
  /** The value to send; `undefined` where this codec cannot say it. Expects a positive, finite number. */
  format(ms: number): string | undefined
}
