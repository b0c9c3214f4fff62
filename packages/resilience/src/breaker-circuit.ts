import { type BreakerMoved, breakerMoved } from '@timebudget/core'
import { BreakerCounts } from './breaker-counts.ts'
import type { ResolvedBreakerOptions } from './breaker-options.ts'

/** Whether calls go through: all, none, or a probe at a time. */
export type BreakerState = BreakerMoved['to']

/** What the end of a call says about what was called. */
export type Verdict = 'success' | 'failure' | 'neutral'

/** One call's leave to go through. */
export interface Pass {
  /** Between which two moves of the circuit it was given. */
  readonly period: number
  /** Until when, by the clock, it is the reason for refusing others, if it is a probe. */
  readonly holdsUntil: number
}

/**
 * The states of a breaker. It has no timer: whoever comes first after the pause is the probe, and a probe that takes
 * too long stops counting for whoever asks next. What a call says counts only in the period it began in, so that calls
 * from before an outage neither prolong nor end it.
 */
export class Circuit {
  readonly #name: string
  readonly #options: ResolvedBreakerOptions
  readonly #counts: BreakerCounts
  readonly #probes = new Set<Pass>()
  #state: BreakerState = 'closed'
  #period = 0
  /** When, by the clock, an open circuit lets the first probe through. */
  #probesFrom = 0

  constructor(name: string, options: ResolvedBreakerOptions) {
    this.#name = name
    this.#options = options
    this.#counts = new BreakerCounts(options)
  }

  /** `half_open` from the moment on at which a probe may go. */
  get state(): BreakerState {
    return this.#state === 'open' && this.retryAfter === 0 ? 'half_open' : this.#state
  }

  /** Milliseconds until a call may be let through; 0 if one would be now. */
  get retryAfter(): number {
    if (this.#state === 'closed') return 0
    const now = this.#options.clock.now()
    if (this.#state === 'open') return Math.max(0, this.#probesFrom - now)
    this.#dropLapsed(now)
    if (this.#probes.size < this.#options.probes) return 0
    return Math.min(...Array.from(this.#probes, ({ holdsUntil }) => holdsUntil)) - now
  }

  /** Leave for one call that has so many milliseconds left; `undefined` if it must not be made. */
  enter({ remaining }: { readonly remaining: number }): Pass | undefined {
    if (this.retryAfter > 0) return undefined
    if (this.#state === 'open') this.#move('half_open')
    const holdsUntil = this.#options.clock.now() + Math.min(remaining, this.#options.probeTimeout)
    const pass = { period: this.#period, holdsUntil }
    if (this.#state === 'half_open') this.#probes.add(pass)
    return pass
  }

  /** Takes back the leave with what the call's end says. */
  leave(pass: Pass, verdict: Verdict): void {
    if (pass.period !== this.#period) return
    this.#probes.delete(pass)
    if (verdict === 'neutral') return
    const failed = verdict === 'failure'
    if (this.#state === 'closed') {
      if (this.#counts.add({ failed })) this.#open()
    } else if (failed) this.#open()
    else this.#move('closed')
  }

  #open(): void {
    this.#probesFrom = this.#options.clock.now() + this.#options.halfOpenAfter
    this.#move('open')
  }

  #move(to: BreakerState): void {
    const from = this.#state
    this.#state = to
    this.#period += 1
    this.#probes.clear()
    this.#counts.clear()
    breakerMoved.publish(() => ({ breaker: this.#name, from, to }))
  }

  #dropLapsed(now: number): void {
    for (const probe of this.#probes) if (probe.holdsUntil <= now) this.#probes.delete(probe)
  }
}
