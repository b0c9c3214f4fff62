import type { Clock, ClockTimer } from '@timebudget/core'
import type { Limits } from './profiles.ts'

/** A limit that can pass. */
export type Limit = 'connect' | 'firstToken' | 'idleContent' | 'idleTransport' | 'total'

/** What a governor is made of. */
export interface GovernorOptions {
  readonly limits: Limits
  readonly clock: Clock
  /** Whether a first token is waited for: of a whole answer there is none before its end. */
  readonly awaitsFirstToken: boolean
  /** Called at most once. */
  readonly onLimit: (limit: Limit) => void
}

/**
 * A timer as late as this, in milliseconds, fired because the process could not run earlier: what arrived in the meantime
 * is looked at before anybody is judged.
 */
const late = 10

/** What comes in pieces of so many bytes is no sign of life but an answer, if perhaps the middle of one long event. */
const bulk = 1024

/**
 * The timers of one call. Told what arrives, it says which limit has passed, if one has; the time in which we hold back
 * reading, because the answer's reader is slow, counts towards none but the total.
 */
export class StreamGovernor {
  readonly #limits: Limits
  readonly #clock: Clock
  readonly #onLimit: (limit: Limit) => void
  readonly #startedAt: number
  #connectDue = Infinity
  #firstTokenDue: number
  #contentAt: number | undefined
  #transportAt = 0
  #heldAt: number | undefined
  #timer: ClockTimer | undefined
  #timerAt = Infinity
  #over = false

  constructor({ limits, clock, awaitsFirstToken, onLimit }: GovernorOptions) {
    this.#limits = limits
    this.#clock = clock
    this.#onLimit = onLimit
    this.#startedAt = clock.now()
    this.#firstTokenDue = awaitsFirstToken ? this.#startedAt + limits.firstToken : Infinity
    this.#arm()
  }

  /** A connection is being made. */
  connecting(): void {
    if (this.#over) return
    this.#connectDue = this.#clock.now() + this.#limits.connect
    this.#arm()
  }

  connected(): void {
    this.#connectDue = Infinity
  }

  /** The answer will come as a whole: no first token is waited for any more. */
  comesWhole(): void {
    this.#firstTokenDue = Infinity
  }

  /** So many bytes have arrived, be it of a comment or a ping. */
  transport(bytes: number): void {
    this.#transportAt = this.#clock.now()
    if (this.#contentAt !== undefined && bytes >= bulk) this.#contentAt = this.#transportAt
  }

  /** A piece of content has arrived. */
  content(): void {
    const isFirst = this.#contentAt === undefined
    this.#contentAt = this.#transportAt = this.#clock.now()
    if (!isFirst) return
    this.#firstTokenDue = Infinity
    this.#arm()
  }

  /** From now on nothing is read, for want of a reader. */
  hold(): void {
    this.#heldAt ??= this.#clock.now()
  }

  resume(): void {
    if (this.#heldAt === undefined) return
    const held = this.#clock.now() - this.#heldAt
    this.#heldAt = undefined
    this.#firstTokenDue += held
    if (this.#contentAt !== undefined) this.#contentAt += held
    this.#transportAt += held
    this.#arm()
  }

  /** The call is over: no timer is left. */
  done(): void {
    this.#over = true
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** One timer, for whatever is due first; what moves later meanwhile is found out when it fires. */
  #arm(): void {
    if (this.#over) return
    const { at } = this.#nextDue()
    if (this.#timer !== undefined && this.#timerAt <= at) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = at
    if (at === Infinity) return
    // rounded up, or it would fire up to a millisecond early
    const delay = Math.max(0, Math.ceil(at - this.#clock.now()))
    this.#timer = this.#clock.wakeAfter(delay, () => this.#wake({ givesWay: true }))
  }

  #wake({ givesWay }: { readonly givesWay: boolean }): void {
    this.#timer = undefined
    if (this.#over) return
    const now = this.#clock.now()
    const { limit, at } = this.#nextDue()
    if (at > now) return this.#arm()
    if (givesWay && now - at > late) {
      this.#timerAt = now
      this.#timer = this.#clock.wakeAfter(1, () => this.#wake({ givesWay: false }))
      return
    }
    this.done()
    this.#onLimit(limit)
  }

  #nextDue(): { readonly limit: Limit; readonly at: number } {
    const { idleContent, idleTransport, total } = this.#limits
    const runs = this.#heldAt === undefined
    const hasBegun = runs && this.#contentAt !== undefined
    const candidates: ReadonlyArray<{ readonly limit: Limit; readonly at: number }> = [
      { limit: 'total', at: this.#startedAt + total },
      { limit: 'connect', at: this.#connectDue },
      { limit: 'firstToken', at: runs ? this.#firstTokenDue : Infinity },
      { limit: 'idleContent', at: hasBegun ? (this.#contentAt ?? 0) + idleContent : Infinity },
      { limit: 'idleTransport', at: hasBegun ? this.#transportAt + idleTransport : Infinity },
    ]
    return candidates.reduce((first, other) => (other.at < first.at ? other : first))
  }
}
