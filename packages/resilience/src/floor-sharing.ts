import { randomUUID } from 'node:crypto'
import type { Clock } from '@timebudget/core'
import { type FloorPart, readParts, writeParts } from './floor-parts.ts'
import type { FloorStore } from './floor-store.ts'
import type { Latency } from './latency.ts'

/** What one floor shares, and where. Milliseconds. */
export interface FloorSharingOptions {
  readonly store: FloorStore
  readonly latency: Latency
  readonly window: number
  readonly clock: Clock
  readonly random: () => number
}

interface Heard {
  readonly turn: number
  readonly at: number
}

// Often enough for a window of a minute, seldom enough for a store that has other work.
const pause = 5000

const firstPause = 500

const longestPause = 60_000

// A store that is slower than this is down.
const patience = 5000

/**
 * Tells the other replicas of a service what this one has learned, and hears what they have. All replicas of a floor
 * share one value of the store, in which each replaces its own part: whatever is lost when two write at once is
 * written again a few seconds later. No request waits for it, and while nothing happens it does nothing.
 */
export class FloorSharing {
  readonly #options: FloorSharingOptions
  readonly #key: string
  readonly #replica: string = randomUUID()
  #turn = 0
  #pause = firstPause
  #awake = false
  /** The last turn of each other replica, and when it was heard. */
  #heard = new Map<string, Heard>()

  constructor(operation: string, options: FloorSharingOptions) {
    this.#key = `timebudget:floor:${operation}`
    this.#options = options
  }

  /** Shares soon, unless that is under way. */
  wake(): void {
    if (this.#awake) return
    this.#awake = true
    const { clock, random } = this.#options
    // replicas that were started together must not stay together
    clock.wakeAfter(this.#pause * (0.75 + random() / 2), () => void this.#share())
  }

  async #share(): Promise<void> {
    try {
      await this.#exchange()
      this.#pause = pause
    } catch (error) {
      this.#pause = Math.min(Math.max(pause, this.#pause * 2), longestPause)
      warnOnce(this.#options.store, error)
    }
    this.#awake = false
  }

  async #exchange(): Promise<void> {
    const { store, latency, window, clock } = this.#options
    const text = await within(store.get(this.#key), { clock })
    const others = this.#hear(readParts(text).filter(({ replica }) => replica !== this.#replica))
    this.#turn += 1
    const own: FloorPart = { replica: this.#replica, turn: this.#turn, latency: latency.snapshot() }
    const ttl = Math.ceil(Math.min(2 * window, Number.MAX_SAFE_INTEGER))
    await within(store.set(this.#key, writeParts([...others, own]), ttl), { clock })
  }

  /** Takes in what is new of them, and returns those that were heard of within a window: the others have ended. */
  #hear(parts: readonly FloorPart[]): FloorPart[] {
    const { latency, window, clock } = this.#options
    const now = clock.now()
    const heard = new Map<string, Heard>()
    const alive: FloorPart[] = []
    for (const part of parts) {
      const before = this.#heard.get(part.replica)
      const isNew = before?.turn !== part.turn
      if (isNew) latency.hear(part.replica, part.latency)
      const at = isNew ? now : before.at
      heard.set(part.replica, { turn: part.turn, at })
      if (now - at < window) alive.push(part)
    }
    this.#heard = heard
    return alive
  }
}

/** The promise's result, unless that takes longer than a store may. */
function within<T>(promise: Promise<T>, { clock }: { readonly clock: Clock }): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.wakeAfter(patience, () =>
      reject(new Error(`the store has not answered for ${patience} ms`)),
    )
    promise.then(resolve, reject).finally(() => timer.cancel())
  })
}

const warnedOf = new WeakSet<FloorStore>()

function warnOnce(store: FloorStore, error: unknown): void {
  if (warnedOf.has(store)) return
  warnedOf.add(store)
  process.emitWarning(`learned floors are not shared: ${String(error)}`, 'TimeBudgetWarning')
}
