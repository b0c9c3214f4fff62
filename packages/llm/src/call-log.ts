import {
  findTimeBudgetError,
  isTimeBudgetError,
  outcomeOf,
  type RunningOperation,
  UpstreamError,
} from '@timebudget/core'
import type { AnswerTimings } from './answer.ts'
import type { LlmCall } from './call-record.ts'
import type { CostBook } from './cost-book.ts'
import { addCost, type Cost } from './prices.ts'
import { addUsage, unknownUsage, type Usage } from './usage.ts'

interface Logged {
  readonly rung: string
  readonly call: LlmCall
}

/** Every call to a model that a question has led to: what it cost, and what really became of it. */
export class CallLog {
  readonly #logged: Logged[] = []

  add(rung: string, call: LlmCall): void {
    this.#logged.push({ rung, call })
  }

  /** How many there are: a place in the log, to look at what comes after it. */
  get count(): number {
    return this.#logged.length
  }

  /**
   * What a rung really failed with: the end of its operation, else what its last call is known to have failed with, since
   * SDKs lose it, else the error itself.
   */
  blame(own: RunningOperation | undefined, error: unknown, since: number): unknown {
    const reason = own?.deadline.reason
    if (reason !== undefined) return reason
    const ours = findTimeBudgetError(trueErrorOf(error, this.#logged.slice(since).at(-1)?.call))
    if (ours !== undefined || own === undefined) return ours ?? error
    const message = error instanceof Error ? error.message : String(error)
    return new UpstreamError(`${own.entry.name} failed: ${message}`, {
      operation: own.entry.name,
      elapsed: own.deadline.elapsed(),
      cause: error,
    })
  }

  /** Whether a model may have begun on it: anything but what is known not to have left. */
  wasSent(since: number, error: unknown): boolean {
    const calls = this.#logged.slice(since).map(({ call }) => call)
    if (calls.length > 0) return calls.some((call) => call.outcome !== 'connect_timeout' && isConnected(call))
    return !['short_circuited', 'circuit_open', 'shed', 'connect_timeout'].includes(outcomeOf(error))
  }

  /** What all of them used, and how long the rung's last one took to connect and to say something. */
  summary(rung: string): { readonly usage: Usage; readonly timings: Omit<AnswerTimings, 'total'> } {
    const usage = this.#logged.reduce((sum, { call }) => addUsage(sum, call.usage), unknownUsage)
    const { connect, firstToken } =
      this.#logged.findLast((logged) => logged.rung === rung)?.call.timings ?? {}
    return { usage, timings: { connect, firstToken } }
  }

  cost(book: CostBook): Cost | undefined {
    return this.#logged.reduce<Cost | undefined>(
      (sum, { call }) => addCost(sum, book.costOf(call)),
      undefined,
    )
  }
}

/** What a call to a model really failed with: SDKs lose our errors, but the provider's own they tell best. */
export function trueErrorOf(thrown: unknown, call: LlmCall | undefined): unknown {
  if (call === undefined || !isTimeBudgetError(call.error)) return thrown
  if (call.error.outcome !== 'upstream_error') return call.error
  const { operation, elapsed, message } = call.error
  return new UpstreamError(message, { operation, elapsed, retryAfter: call.retryAfter, cause: thrown })
}

function isConnected({ status, timings }: LlmCall): boolean {
  return status !== undefined || timings.connect !== undefined
}
