import {
  CircuitOpenError,
  currentDeadline,
  Deadline,
  type OperationOptions,
  type OperationScope,
  type RunningOperation,
  startOperation,
} from '@timebudget/core'
import { type BreakerState, Circuit, type Verdict } from './breaker-circuit.ts'
import {
  type BreakerOptions,
  type CallEnd,
  type ResolvedBreakerOptions,
  resolveBreakerOptions,
} from './breaker-options.ts'
import { Patience } from './breaker-patience.ts'
import { judge } from './breaker-verdict.ts'
import { textOf } from './option-values.ts'

/** What one call through a breaker may take. */
export interface BreakerCallOptions extends OperationOptions {
  /** The operation's name in the ledger; the breaker's. */
  readonly operation?: string | undefined
}

/** Stops calling what keeps failing, and tries now and then whether it is well again. */
export class Breaker {
  readonly name: string
  readonly #options: ResolvedBreakerOptions
  readonly #circuit: Circuit
  readonly #patience: Patience

  constructor(name: string, options: ResolvedBreakerOptions) {
    this.name = name
    this.#options = options
    this.#circuit = new Circuit(name, options)
    this.#patience = new Patience(options.patience)
  }

  /** `half_open` also before the first probe, from the moment on at which it may go. */
  get state(): BreakerState {
    return this.#circuit.state
  }

  /** Milliseconds until a call may be let through; 0 if one would be now. */
  get retryAfter(): number {
    return this.#circuit.retryAfter
  }

  /**
   * Runs the work as an operation, unless the circuit is open: then it fails at once.
   * @throws CircuitOpenError, with `retryAfter`, without starting the work; whatever `operation()` throws.
   */
  async run<T>(
    work: (scope: OperationScope) => Promise<T> | T,
    options: BreakerCallOptions = {},
  ): Promise<T> {
    const { operation = this.name, ...limits } = options
    const deadline =
      limits.deadline ?? currentDeadline() ?? Deadline.after(Infinity, { clock: this.#options.clock })
    // a floor is neither asked about nor taught by what is refused for another reason
    const floor = this.retryAfter > 0 ? undefined : limits.floor
    const running = startOperation(operation, { ...limits, deadline, floor })
    const pass = this.#circuit.enter({ remaining: running.deadline.remaining() })
    if (pass === undefined) throw running.fail(this.#refusal(running))
    try {
      const result = await running.run(work)
      const verdict = this.#judge({ kind: 'result', result }, running)
      if (verdict === 'success') this.#patience.learn(running.entry.spent ?? 0)
      this.#circuit.leave(pass, verdict)
      return result
    } catch (error) {
      this.#circuit.leave(pass, this.#judge({ kind: 'error', error }, running))
      throw error
    }
  }

  /** What the end says; rules of the user's that throw cost neither the caller its result nor a probe its slot. */
  #judge(end: CallEnd, running: RunningOperation): Verdict {
    const { budget, reason: cutOffBy } = running.deadline
    // who cuts a call off before its time has granted it no more than it has had
    const granted = cutOffBy === undefined ? budget : Math.min(budget, running.entry.spent ?? budget)
    const call = { granted, cutOffBy, patience: this.#patience }
    try {
      return judge(end, call, this.#options)
    } catch (error) {
      process.emitWarning(
        `the rules of the breaker ${this.name} failed: ${String(error)}`,
        'TimeBudgetWarning',
      )
      return end.kind === 'error' ? 'failure' : 'success'
    }
  }

  #refusal({ entry, deadline }: RunningOperation): CircuitOpenError {
    const { retryAfter } = this
    return new CircuitOpenError(
      `${entry.name} is not called, because ${this.name} keeps failing; it is tried again in ${Math.ceil(retryAfter)} ms`,
      {
        operation: entry.name,
        budget: deadline.budget,
        elapsed: deadline.elapsed(),
        remaining: deadline.remaining(),
        retryAfter,
      },
    )
  }
}

/**
 * A circuit breaker for one thing that is called, such as a service or a model.
 *
 *     const search = breaker('search', { failures: 5, halfOpenAfter: '10s' })
 *     const hits = await search.run(({ signal }) => fetch(url, { signal }))
 *
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export function breaker(name: string, options: BreakerOptions = {}): Breaker {
  return new Breaker(textOf(name, 'name'), resolveBreakerOptions(options))
}
