import type { CodecName } from './codec.ts'
import { codecs, defaultEmit } from './codecs.ts'

/** What has to be known of a deadline to write it. */
export interface SendableDeadline {
  /** Milliseconds left. */
  remaining(): number
  /** Unix epoch ms. */
  readonly expiresAt: number
}

/**
 * The headers that carry a deadline, their names in lower case; none where nothing is left or the budget is
 * endless, and none that could not say it (900 ms in whole seconds). Never throws.
 */
export function encodeDeadline(
  deadline: SendableDeadline,
  emit: readonly CodecName[] = defaultEmit,
): Record<string, string> {
  const headers: Record<string, string> = {}
  const left = deadline.remaining()
  // Written so that NaN sends nothing as well.
  if (!(left > 0) || left === Infinity) return headers
  for (const name of emit) {
    const codec = codecs[name]
    const value = codec.format(codec.kind === 'absolute' ? deadline.expiresAt : left)
    if (value !== undefined) headers[codec.header] = value
  }
  return headers
}
