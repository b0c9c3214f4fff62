import { type Clock, type ClockTimer, type Duration, parseDuration, systemClock } from '@timebudget/core'
import { type Drop, MemoryRecording } from './memory-recording.ts'
import type { Frame, Recording, ResumeStore, StoredWork } from './store.ts'

/** What `memoryResume()` takes; every option may be left out. */
export interface MemoryResumeOptions {
  /** How long work goes on without a connection, and how long a finished stream can be read; `'30s'`. */
  readonly grace?: Duration | undefined
  /** Events kept of each stream, the latest; 2,000. */
  readonly window?: number | undefined
  /** Characters kept of each stream; 1,000,000. */
  readonly characters?: number | undefined
  /** Streams kept at a time; 1,000. Finished ones make room first; what finds none cannot be taken up again. */
  readonly streams?: number | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/**
 * Keeps streams in this process: a connection that was lost must come back to the same one.
 * @throws TypeError that names the option which cannot be read.
 */
export function memoryResume(options: MemoryResumeOptions = {}): ResumeStore {
  return new MemoryStore(options)
}

class MemoryStore implements ResumeStore {
  readonly grace: number
  readonly #window: number
  readonly #characters: number
  readonly #streams: number
  readonly #clock: Clock
  readonly #live = new Map<string, MemoryRecording>()
  readonly #finished = new Map<string, { readonly recording: MemoryRecording; readonly timer: ClockTimer }>()

  constructor({
    grace = '30s',
    window = 2_000,
    characters = 1_000_000,
    streams = 1_000,
    clock,
  }: MemoryResumeOptions) {
    this.grace = parseDuration(grace, 'grace')
    this.#window = atLeastOne(window, 'window')
    this.#characters = atLeastOne(characters, 'characters')
    this.#streams = atLeastOne(streams, 'streams')
    this.#clock = clock ?? systemClock
  }

  open(id: string, work: StoredWork): Recording {
    if (this.#live.has(id) || this.#finished.has(id)) throw new Error(`there is a stream ${id} already`)
    const isResumable = this.#makeRoom()
    const limits = { window: this.#window, characters: this.#characters }
    const drop: Drop = () => this.#finish(id)
    const recording = new MemoryRecording({ ...limits, isResumable, work, finished: drop })
    if (isResumable) this.#live.set(id, recording)
    return recording
  }

  async read(id: string, after: number): Promise<AsyncIterableIterator<Frame> | undefined> {
    return (this.#live.get(id) ?? this.#finished.get(id)?.recording)?.read(after)
  }

  async stop(id: string): Promise<boolean> {
    const recording = this.#live.get(id)
    recording?.work.stop()
    return recording !== undefined
  }

  #makeRoom(): boolean {
    if (this.#live.size + this.#finished.size < this.#streams) return true
    for (const id of this.#finished.keys()) {
      this.#forget(id)
      return true
    }
    return false
  }

  #finish(id: string): void {
    const recording = this.#live.get(id)
    if (recording === undefined) return
    this.#live.delete(id)
    const timer = this.#clock.wakeAfter(this.grace, () => this.#forget(id))
    this.#finished.set(id, { recording, timer })
  }

  #forget(id: string): void {
    this.#finished.get(id)?.timer.cancel()
    this.#finished.delete(id)
  }
}

function atLeastOne(value: number, option: string): number {
  if (Number.isInteger(value) && value >= 1) return value
  throw new TypeError(`${option}: expected a whole number of at least 1, got ${String(value)}`)
}
