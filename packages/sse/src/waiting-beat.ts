import type { Deadline } from '@timebudget/core'
import { comment, encodeEvent } from './frame.ts'

/** Data of a `heartbeat` event, in whole milliseconds: how long the client has waited, and what is left, if that is limited. */
export interface HeartbeatData {
  readonly elapsed: number
  readonly remaining?: number | undefined
}

/** While a client waits for the first token it learns that somebody works on it; later a comment does. */
export function waitingBeat(deadline: Deadline, isWaiting: () => boolean): () => string {
  return function beat() {
    if (!isWaiting()) return comment
    const remaining = deadline.remaining()
    const data: HeartbeatData = {
      elapsed: Math.round(deadline.elapsed()),
      ...(Number.isFinite(remaining) ? { remaining: Math.round(remaining) } : {}),
    }
    return encodeEvent({ event: 'heartbeat', data })
  }
}
