import type { Deadline } from './deadline.ts'
import { follow, unfollow } from './signal-links.ts'

/**
 * What ties a deadline to others: the one above it and those below, its own signal, and a foreign one that it follows.
 * Most deadlines of requests have none.
 */
export class DeadlineLinks {
  readonly #deadline: Deadline
  controller: AbortController | undefined
  #followed: { readonly signal: AbortSignal; readonly follower: () => void } | undefined
  // those below stand in an own list: a listener and a closure for each would cost 25 times as much
  #above: DeadlineLinks | undefined
  #firstBelow: DeadlineLinks | undefined
  #nextBeside: DeadlineLinks | undefined
  #previousBeside: DeadlineLinks | undefined

  constructor(deadline: Deadline) {
    this.#deadline = deadline
  }

  get isUnderAnother(): boolean {
    return this.#above !== undefined
  }

  joinUnder(above: DeadlineLinks): void {
    this.#above = above
    this.#nextBeside = above.#firstBelow
    if (above.#firstBelow !== undefined) above.#firstBelow.#previousBeside = this
    above.#firstBelow = this
  }

  /** Ends what `joinUnder` began. */
  leave(): void {
    if (this.#above === undefined) return
    if (this.#previousBeside === undefined) this.#above.#firstBelow = this.#nextBeside
    else this.#previousBeside.#nextBeside = this.#nextBeside
    if (this.#nextBeside !== undefined) this.#nextBeside.#previousBeside = this.#previousBeside
    this.#above = this.#nextBeside = this.#previousBeside = undefined
  }

  /** Lets go of one of those below and returns it; `undefined` once there is none. */
  takeBelow(): Deadline | undefined {
    const below = this.#firstBelow
    if (below === undefined) return undefined
    below.leave()
    return below.#deadline
  }

  follow(signal: AbortSignal, follower: () => void): void {
    this.#followed = { signal, follower }
    follow(signal, follower)
  }

  /** Ends what `follow` began. */
  unfollow(): void {
    if (this.#followed === undefined) return
    unfollow(this.#followed.signal, this.#followed.follower)
    this.#followed = undefined
  }
}
