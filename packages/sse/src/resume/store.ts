/** One event of a stream that is kept, as it is sent. */
export interface Frame {
  /** Its place in the stream, from 1. */
  readonly seq: number
  readonly text: string
  /** Whether it ends the stream. */
  readonly isLast: boolean
}

/** What a store may ask of the work behind a stream. */
export interface StoredWork {
  /** Ends it at once: its user has stopped it, here or elsewhere. */
  stop(): void
  /** The last connection of this process has left. */
  unwatched(): void
}

/** What is kept of one stream. */
export interface Recording {
  /** Whether another connection can find it; not, where a store is full. */
  readonly isResumable: boolean
  /** Settles, without ever rejecting, once every connection of this process keeps up. */
  append(frame: Frame): Promise<void>
  /** The frames after this one, then those to come; `undefined` if some of them are gone. */
  read(after: number): AsyncIterableIterator<Frame> | undefined
  /** Whether a connection follows it, here or elsewhere; must not reject. */
  isWatched(): boolean | Promise<boolean>
}

/** Where streams are kept for a while, so that a connection that was lost can be taken up again. */
export interface ResumeStore {
  /** How long work goes on without a connection, and how long a finished stream can be read; milliseconds. */
  readonly grace: number
  open(id: string, work: StoredWork): Recording
  /** As `Recording.read`; `undefined` for a stream that is not known too. Must not reject. */
  read(id: string, after: number): Promise<AsyncIterableIterator<Frame> | undefined>
  /** Whether there was such a stream to stop. Must not reject. */
  stop(id: string): Promise<boolean>
}
