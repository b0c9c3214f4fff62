import type { CodecName } from './codec.ts'
import { defaultEmit } from './codecs.ts'

/** What has to be known of a deadline to write it. */
export interface SendableDeadline {
  /** Milliseconds left. */
  remaining(): number
  /** Unix epoch ms. */
  readonly expiresAt: number
}

/** The headers that carry a deadline; none where nothing is left or the budget is endless. Never throws. */
export function encodeDeadline(
  _deadline: SendableDeadline,
  _emit: readonly CodecName[] = defaultEmit,
): Record<string, string> {
  return {}
}
