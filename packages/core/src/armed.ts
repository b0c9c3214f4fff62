import { ambient } from './ambient.ts'
import type { Deadline } from './deadline.ts'
import { type DeadlineTimers, TimedEntry } from './deadline-timers.ts'
import type { TimeBudgetError } from './errors.ts'
import { follow, unfollow } from './signal-links.ts'

/** The one party that must act when a deadline ends, before any signal aborts. */
export interface DeadlineWatcher {
  /** Whether the work is over although nobody said so yet: then the deadline settles instead of ending. */
  isOver(): boolean
  /** Must not throw. */
  deadlineEnded(reason: TimeBudgetError): void
}

/** What an armed deadline asks of the deadline it belongs to. */
export interface ArmedOwner {
  fire(deadline: Deadline): void
  observe(deadline: Deadline): TimeBudgetError | undefined
}

/**
 * The part of a deadline that holds on to the world: its timer, its links to parent, children and a foreign signal, and
 * whoever listens. It exists only once somebody listens, and gives everything back in `release`.
 */
export class Armed extends TimedEntry {
  readonly #deadline: Deadline
  readonly #owner: ArmedOwner
  readonly #timers: DeadlineTimers
  controller: AbortController | undefined
  watcher: DeadlineWatcher | undefined
  #followed: { readonly signal: AbortSignal; readonly follower: () => void } | undefined
  #notified = false
  // children stand in an own list: a listener and a closure for each would cost 25 times as much
  #above: Armed | undefined
  #firstBelow: Armed | undefined
  #nextBeside: Armed | undefined
  #previousBeside: Armed | undefined

  constructor(deadline: Deadline, owner: ArmedOwner, timers: DeadlineTimers, at: number) {
    super(at)
    this.#deadline = deadline
    this.#owner = owner
    this.#timers = timers
  }

  /** Starts the timer, if it has not begun; with `hold` it keeps the process alive. */
  start({ hold, now }: { readonly hold: boolean; readonly now: number }): void {
    if (this.#notified || this.at === Infinity) return
    if (this.slot < 0) this.#timers.add(this, now)
    if (hold) this.#timers.hold(this)
  }

  override fire(): void {
    this.#owner.fire(this.#deadline)
  }

  followSignal(signal: AbortSignal, follower: () => void): void {
    this.#followed = { signal, follower }
    follow(signal, follower)
  }

  /** Tells everybody once: first the watcher, then our own listeners, then the children. */
  notify(reason: TimeBudgetError): void {
    if (this.#notified) return
    this.#notified = true
    this.#stop()
    this.#unlink()
    const watcher = this.watcher
    this.watcher = undefined
    watcher?.deadlineEnded(reason)
    if (this.controller !== undefined) abortUnder(this.#deadline, this.controller, reason)
    for (let below = this.#firstBelow; below !== undefined; below = this.#firstBelow) {
      below.#unlink()
      below.notify(this.#owner.observe(below.#deadline) ?? reason)
    }
  }

  /**
   * Gives back timer, listener and links; the children go on under `heir`. There is none also when those above have
   * ended and are just telling so: the children, no longer within their reach, hear of it here.
   */
  release(heir: Armed | undefined): void {
    this.watcher = undefined
    this.#stop()
    for (let below = this.#firstBelow; below !== undefined; below = this.#firstBelow) {
      below.#unlink()
      if (heir === undefined) below.fire()
      else below.joinUnder(heir)
    }
    this.#unlink()
  }

  joinUnder(above: Armed | undefined): void {
    if (above === undefined || above.#notified) return
    this.#above = above
    this.#nextBeside = above.#firstBelow
    if (above.#firstBelow !== undefined) above.#firstBelow.#previousBeside = this
    above.#firstBelow = this
  }

  #stop(): void {
    this.#timers.remove(this)
    if (this.#followed !== undefined) unfollow(this.#followed.signal, this.#followed.follower)
    this.#followed = undefined
  }

  #unlink(): void {
    if (this.#above === undefined) return
    if (this.#previousBeside === undefined) this.#above.#firstBelow = this.#nextBeside
    else this.#previousBeside.#nextBeside = this.#nextBeside
    if (this.#nextBeside !== undefined) this.#nextBeside.#previousBeside = this.#previousBeside
    this.#above = this.#nextBeside = this.#previousBeside = undefined
  }
}

function abortUnder(deadline: Deadline, controller: AbortController, reason: TimeBudgetError): void {
  if (ambient.used) ambient.storage.run(deadline, () => controller.abort(reason))
  else controller.abort(reason)
}
