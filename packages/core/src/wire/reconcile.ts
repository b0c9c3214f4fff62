import type { CodecName } from './codec.ts'

/** A deadline as it was received. */
export interface WireDeadline {
  /** Milliseconds left on arrival; 0 or less means that it had expired. */
  readonly remaining: number
  /** The absolute value received, epoch ms on the sender's clock; `epochToSend` says whether it is sent on. */
  readonly epochMs?: number
  /** The header that decided; of a pair the relative one. */
  readonly codec: CodecName
  /** Milliseconds taken off for time spent waiting before it was read. */
  readonly charged: number
  /** Transit of this message in ms, clock difference included, where absolute and relative were both there. */
  readonly skew?: number
}
