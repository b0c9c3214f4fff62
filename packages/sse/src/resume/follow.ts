import type { ServerResponse } from 'node:http'
import type { Deadline } from '@timebudget/core'
import { Connection } from '../connection.ts'
import type { ResolvedStreamOptions } from '../options.ts'
import { waitingBeat } from '../waiting-beat.ts'
import type { Frame } from './store.ts'

/** What a connection follows. */
export interface Following {
  readonly frames: AsyncIterableIterator<Frame>
  /** The last event its client has seen. */
  readonly after: number
  /** What is left for a client that still waits. */
  readonly deadline: Deadline
  readonly options: ResolvedStreamOptions
}

/** The `stream` event, which says how to come back, is no content yet. */
const firstContent = 2

/** Sends the frames of a recording to one client, at its pace, until one of them leaves or the stream ends. */
export function follow(response: ServerResponse, { frames, after, deadline, options }: Following): void {
  let seen = after
  const beat = waitingBeat(deadline, () => seen < firstContent)
  const connection = new Connection(response, { ...options, beat })
  connection.onClosed(() => void frames.return?.())
  void copy(frames, {
    async send(frame) {
      seen = frame.seq
      return frame.isLast ? connection.end(frame.text) : connection.write(frame.text)
    },
  }).then((isWhole) => {
    // its client can come back for the rest, or be told that it is gone
    if (!isWhole) connection.cutOff(undefined)
  })
}

/** `true` once the last frame has been sent. Store errors count as an end: they are no error of the request. */
async function copy(
  frames: AsyncIterable<Frame>,
  to: { send(frame: Frame): Promise<boolean> },
): Promise<boolean> {
  try {
    for await (const frame of frames) {
      const goesOn = await to.send(frame)
      if (frame.isLast) return true
      if (!goesOn) return false
    }
  } catch {
    // a store that fails ends the connection, not the process
  }
  return false
}
