import type { Snapshot } from '../snapshot.ts'

/** How the page stands with its server. */
export type Connection = 'live' | 'lost' | 'refused' | 'paused'

const interval = 400
const shortPause = 40
const longestPause = 5_000
const patience = 10_000

/** What is polled for, and who is told. */
export interface PollTarget {
  readonly place: string | undefined
  /** The request that is looked at. */
  readonly request: number | undefined
  received(snapshot: Snapshot): void
  changed(connection: Connection): void
}

/** Asks for snapshots, one after the other, never two at a time; not while nobody looks at the page. */
export class Poll {
  readonly #target: PollTarget
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #isPaused = false
  #isAsking = false
  #isHurried = false

  constructor(target: PollTarget) {
    this.#target = target
    document.addEventListener('visibilitychange', () => this.#schedule(0))
  }

  get paused(): boolean {
    return this.#isPaused
  }

  pause(): void {
    this.#isPaused = true
    this.#target.changed('paused')
  }

  resume(): void {
    this.#isPaused = false
    this.#schedule(0)
  }

  /** Asks at once, also while paused: another request is looked at. */
  hurry(): void {
    if (this.#isPaused) void this.#fetch()
    else {
      this.#isHurried = this.#isAsking
      this.#schedule(0)
    }
  }

  #schedule(delay: number): void {
    clearTimeout(this.#timer)
    if (this.#isPaused || this.#isAsking || document.hidden) return
    this.#timer = setTimeout(() => void this.#ask(), delay)
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    const delay = await this.#fetch()
    this.#isAsking = false
    this.#schedule(this.#isHurried ? 0 : delay)
    this.#isHurried = false
  }

  /** Returns how long to wait before the next one. */
  async #fetch(): Promise<number> {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), patience)
    try {
      const response = await fetch(this.#url(), { cache: 'no-store', signal: controller.signal })
      if (!response.ok) return this.#fail(response.status === 404 ? 'refused' : 'lost')
      const snapshot = (await response.json()) as Snapshot
      this.#failures = 0
      this.#target.received(snapshot)
      if (!this.#isPaused) this.#target.changed('live')
      return snapshot.more ? shortPause : interval
    } catch {
      return this.#fail('lost')
    } finally {
      clearTimeout(timer)
    }
  }

  #fail(connection: Connection): number {
    this.#failures += 1
    if (!this.#isPaused) this.#target.changed(connection)
    return Math.min(longestPause, interval * 2 ** this.#failures)
  }

  #url(): string {
    const { place, request } = this.#target
    const query = new URLSearchParams()
    if (place !== undefined) query.set('place', place)
    if (request !== undefined) query.set('request', String(request))
    return `snapshot.json?${query.toString()}`
  }
}
