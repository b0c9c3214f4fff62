import type { Frame, Recording, StoredWork } from './store.ts'

/** Called when the last frame is in. */
export type Drop = () => void

interface RecordingShape {
  readonly window: number
  readonly characters: number
  readonly isResumable: boolean
  readonly work: StoredWork
  readonly finished: Drop
}

/** The latest frames of one stream, and whoever reads them as they come. */
export class MemoryRecording implements Recording {
  readonly isResumable: boolean
  readonly work: StoredWork
  readonly #shape: RecordingShape
  readonly #readers = new Set<FrameReader>()
  readonly #frames: Frame[] = []
  #size = 0
  #isFinished = false
  #waiting: (() => void)[] = []

  constructor(shape: RecordingShape) {
    this.#shape = shape
    this.isResumable = shape.isResumable
    this.work = shape.work
  }

  append(frame: Frame): Promise<void> {
    this.#frames.push(frame)
    this.#size += frame.text.length
    this.#isFinished = frame.isLast
    this.#forgetOldest()
    for (const reader of this.#readers) reader.wake()
    if (frame.isLast) {
      this.#shape.finished()
      this.#release()
    }
    if (frame.isLast || this.#keepsUp()) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  read(after: number): FrameReader | undefined {
    const next = this.#frames.at(-1)?.seq ?? 0
    if (after > next || this.#isGone(after)) return undefined
    const reader = new FrameReader(this, after)
    this.#readers.add(reader)
    return reader
  }

  isWatched(): boolean {
    return this.#readers.size > 0
  }

  /** The frame after this one; `'gone'` if it is not kept any more, `undefined` if it has not come yet. */
  after(seq: number): Frame | 'gone' | undefined {
    if (this.#isGone(seq)) return 'gone'
    const first = this.#frames[0]
    return first === undefined ? undefined : this.#frames[seq + 1 - first.seq]
  }

  moved(): void {
    if (this.#waiting.length > 0 && this.#keepsUp()) this.#release()
  }

  leave(reader: FrameReader): void {
    if (!this.#readers.delete(reader)) return
    this.moved()
    if (this.#readers.size === 0 && !this.#isFinished) this.work.unwatched()
  }

  #isGone(after: number): boolean {
    const first = this.#frames[0]
    return first !== undefined && after + 1 < first.seq
  }

  /** The last frame stays whatever its size, and up to twice the limits what a connection has yet to read. */
  #forgetOldest(): void {
    while (this.#frames.length > 1 && this.#fills(1)) {
      const [oldest] = this.#frames
      if (oldest === undefined || (oldest.seq > this.#readByAll() && !this.#fills(2))) return
      this.#frames.shift()
      this.#size -= oldest.text.length
    }
  }

  /** Whether what is kept is more than so many times the limits. */
  #fills(times: number): boolean {
    const { window, characters } = this.#shape
    return this.#frames.length > window * times || this.#size > characters * times
  }

  #readByAll(): number {
    let least = Infinity
    for (const reader of this.#readers) least = Math.min(least, reader.position)
    return least
  }

  /** The work waits before a connection that reads slowly would lose what it has yet to read. */
  #keepsUp(): boolean {
    if (!this.#fills(0.5)) return true
    const last = this.#frames.at(-1)?.seq ?? 0
    return last - this.#readByAll() <= this.#frames.length >> 1
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}

/** Reads a recording at its own pace; ends early, without a last frame, when it was too slow. */
class FrameReader implements AsyncIterableIterator<Frame> {
  readonly #recording: MemoryRecording
  #position: number
  #isOver = false
  #wake: (() => void) | undefined

  constructor(recording: MemoryRecording, after: number) {
    this.#recording = recording
    this.#position = after
  }

  /** The last frame that was read. */
  get position(): number {
    return this.#position
  }

  wake(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  async next(): Promise<IteratorResult<Frame, undefined>> {
    while (!this.#isOver) {
      const frame = this.#recording.after(this.#position)
      if (frame === 'gone') break
      if (frame !== undefined) {
        this.#position = frame.seq
        this.#recording.moved()
        return { done: false, value: frame }
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.return()
  }

  async return(): Promise<IteratorResult<Frame, undefined>> {
    this.#isOver = true
    this.wake()
    this.#recording.leave(this)
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
