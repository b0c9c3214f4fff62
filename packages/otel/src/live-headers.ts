import { type Deadline, systemClock } from '@timebudget/core'
import { attemptHeader, type CodecName, codecs, encodeAttempt } from '@timebudget/core/wire'

/** The headers by which a call carries a deadline: that one of them is there means that somebody has written them. */
export function deadlineHeaderNames(emit: readonly CodecName[]): readonly string[] {
  return [attemptHeader, ...emit.map((name) => codecs[name].header)]
}

/**
 * The headers that carry a deadline, each a list of one: what is left is worked out when the headers leave, since a request
 * may wait for its connection. A deadline that has ended goes out with the least there is, so that the peer refuses what
 * cannot be stopped here; one without end goes out as none.
 */
export function* liveHeaders(deadline: Deadline, emit: readonly CodecName[]): Generator<[string, string[]]> {
  if (deadline.remaining() === Infinity) return
  for (const name of emit) {
    const { header } = codecs[name]
    let last = valueOf(deadline, name)
    if (last !== undefined) yield [header, liveList(() => (last = valueOf(deadline, name) ?? last ?? ''))]
  }
  for (const [header, value] of Object.entries(encodeAttempt(deadline.attempt))) yield [header, [value]]
}

function valueOf(deadline: Deadline, name: CodecName): string | undefined {
  const codec = codecs[name]
  const { expired, expiresAt } = deadline
  // never 0, which means no limit to some
  if (codec.kind === 'relative') return codec.format(Math.max(1, deadline.remaining()))
  // one that was cancelled ends before its time
  return codec.format(expired ? Math.min(expiresAt, systemClock.epoch()) : expiresAt)
}

function liveList(read: () => string): string[] {
  return Object.defineProperty([], 0, { get: read, enumerable: true, configurable: true })
}
