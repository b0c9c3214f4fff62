import type { Context, TextMapGetter, TextMapPropagator, TextMapSetter } from '@opentelemetry/api'
import { CallStamp } from './call-stamp.ts'
import { CarriedDeadlines } from './carried-deadline.ts'
import { withoutBudgetBaggage } from './budget-baggage.ts'
import { guarded } from './guarded.ts'
import { observeHttpCalls } from './http-calls.ts'
import { deadlineHeaderNames } from './live-headers.ts'
import {
  type PropagatorOptions,
  resolvePropagatorOptions,
  type ResolvedPropagatorOptions,
} from './propagator-options.ts'
import { observeUndiciCalls } from './undici-calls.ts'

/**
 * A propagator around the user's own: reads the deadlines of callers (`deadlineIn`), tells trusted hosts where a budget
 * comes from, and, for the hosts in `inject`, lets calls that nobody wrapped carry what is left.
 *
 *     new NodeSDK({ textMapPropagator: new DeadlinePropagator({ inject: ['*.internal'] }) })
 *
 * What it writes itself goes into the requests of global fetch, undici and node:http as they are made: an instrumentation
 * that asks for injection does not say where the request goes.
 */
export class DeadlinePropagator implements TextMapPropagator {
  readonly #options: ResolvedPropagatorOptions
  readonly #carried: CarriedDeadlines
  readonly #stamp: CallStamp
  readonly #release: ReadonlyArray<() => void>

  /** @throws TypeError that names the option which is unknown or cannot be read. */
  constructor(options: PropagatorOptions = {}) {
    this.#options = resolvePropagatorOptions(options)
    this.#carried = new CarriedDeadlines(this.#options)
    this.#stamp = new CallStamp(this.#options)
    const stamp = (call: Parameters<CallStamp['write']>[0]): void => this.#stamp.write(call)
    this.#release = [observeHttpCalls(stamp), observeUndiciCalls(stamp)]
  }

  inject(context: Context, carrier: unknown, setter: TextMapSetter): void {
    const { inner } = this.#options
    guarded(
      'inject of the inner propagator',
      () => inner.inject(withoutBudgetBaggage(context), carrier, setter),
      undefined,
    )
  }

  extract(context: Context, carrier: unknown, getter: TextMapGetter): Context {
    const { inner } = this.#options
    const extracted = guarded(
      'extract of the inner propagator',
      () => inner.extract(context, carrier, getter),
      context,
    )
    return guarded('reading a deadline', () => this.#carried.extract(extracted, carrier, getter), extracted)
  }

  /** The names of all headers that a call may carry because of this propagator. */
  fields(): string[] {
    const { inner, emit } = this.#options
    return guarded(
      'fields of the inner propagator',
      () => [...new Set([...inner.fields(), ...deadlineHeaderNames(emit)])],
      [],
    )
  }

  /** Writes nothing any more, and lets go of what it listens to. */
  stop(): void {
    for (const release of this.#release) release()
    this.#stamp.stop()
  }

  /** Stops it at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.stop()
  }
}
