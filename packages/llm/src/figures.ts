import { type Clock, refuseUnknownOptions, systemClock } from '@timebudget/core'
import { Latency } from '@timebudget/resilience'
import { type LlmAnswered, llmAnswered } from './answer-events.ts'
import { llmCallFinished } from './call-events.ts'
import { isAbandoned, isWithoutFirstToken, type LlmCall } from './call-record.ts'

/** How an application's answers by models are doing. Shares are 0 to 1, and absent where nothing was counted yet. */
export interface LlmFigures {
  /** Questions to ladders, but those whose user left. */
  readonly questions: number
  /** Questions whose user left or stopped. */
  readonly abandoned: number
  /** Of the questions: answered, completely, by the first rung. */
  readonly mainSuccess: number | undefined
  /** Of the questions: answered, completely, by a later rung. */
  readonly degradedSuccess: number | undefined
  /** Of the answers: by a later rung, or cut off. */
  readonly degradedShare: number | undefined
  /** Of the answers: cut off. */
  readonly partialShare: number | undefined
  /** Calls to models, but those whose user left. */
  readonly calls: number
  /** Of the calls: streams whose time, by whichever limit, was up before their first token. */
  readonly firstTokenTimeoutRate: number | undefined
  /** Of the calls: fallen silent after their beginning. */
  readonly stallRate: number | undefined
  /**
   * Milliseconds to the first token, of 95 in 100 streams of the last minute; those that were cut off before it count as
   * longer. Absent while there are few, or none has got any.
   */
  readonly firstTokenP95: number | undefined
  /** By currency: what the questions' calls cost for each that came to a complete answer. */
  readonly costPerSuccess: Readonly<Record<string, number>>
}

/**
 * Counts, from events, how an application's answers by models are doing.
 *
 *     const figures = new Figures()
 *     const stop = figures.watch()
 *     app.get('/figures', (request, response) => response.json(figures.current()))
 */
export class Figures {
  readonly #firstToken: Latency
  readonly #spent = new Map<string, number>()
  #questions = 0
  #abandoned = 0
  #main = 0
  #degraded = 0
  #answers = 0
  #degradedAnswers = 0
  #partial = 0
  #calls = 0
  #firstTokenTimeouts = 0
  #stalls = 0

  /** @throws TypeError that names the option which does not exist. */
  constructor(options: { readonly clock?: Clock | undefined } = {}) {
    refuseUnknownOptions(options, ['clock'])
    const { clock = systemClock } = options
    this.#firstToken = new Latency({ clock })
  }

  /** Counts every question and call of the process from now on, until the returned function is called. */
  watch(): () => void {
    const stops = [
      llmAnswered.subscribe((answered) => this.addAnswered(answered)),
      llmCallFinished.subscribe((call) => this.addCall(call)),
    ]
    return function unwatch(): void {
      for (const stop of stops) stop()
    }
  }

  /** Counts one question that a ladder is done with; `watch()` does it by itself. */
  addAnswered({ outcome, answer, cost }: LlmAnswered): void {
    if (cost !== undefined)
      this.#spent.set(cost.currency, (this.#spent.get(cost.currency) ?? 0) + cost.amount)
    if (isAbandoned(outcome)) {
      this.#abandoned += 1
      return
    }
    this.#questions += 1
    if (answer === undefined) return
    this.#answers += 1
    if (answer.degraded) this.#degradedAnswers += 1
    if (!answer.complete) this.#partial += 1
    else if (answer.degraded) this.#degraded += 1
    else this.#main += 1
  }

  /** Counts one call to a model; `watch()` does it by itself. */
  addCall(call: LlmCall): void {
    const { outcome, streams = true, timings, sdkRetry } = call
    // neither was made
    if (sdkRetry || outcome === 'short_circuited') return
    const { firstToken, total } = timings
    if (firstToken !== undefined) this.#firstToken.record(firstToken)
    else if (streams && outcome !== 'ok' && outcome !== 'upstream_error')
      this.#firstToken.record(total, { cut: true })
    if (isAbandoned(outcome)) return
    this.#calls += 1
    if (isWithoutFirstToken(call)) this.#firstTokenTimeouts += 1
    if (outcome === 'stream_stalled') this.#stalls += 1
  }

  #firstTokenP95(): number | undefined {
    const longest = this.#firstToken.quantile(0.95)
    // of calls that were all cut off it is known how long they waited, and no time of any first token
    return longest !== undefined && (this.#firstToken.chance(longest) ?? 0) > 0 ? longest : undefined
  }

  /** What has been counted up to now. */
  current(): LlmFigures {
    const successes = this.#main + this.#degraded
    const perSuccess = [...this.#spent].filter(() => successes > 0)
    return {
      questions: this.#questions,
      abandoned: this.#abandoned,
      mainSuccess: share(this.#main, this.#questions),
      degradedSuccess: share(this.#degraded, this.#questions),
      degradedShare: share(this.#degradedAnswers, this.#answers),
      partialShare: share(this.#partial, this.#answers),
      calls: this.#calls,
      firstTokenTimeoutRate: share(this.#firstTokenTimeouts, this.#calls),
      stallRate: share(this.#stalls, this.#calls),
      firstTokenP95: this.#firstTokenP95(),
      costPerSuccess: Object.fromEntries(
        perSuccess.map(([currency, amount]) => [currency, amount / successes]),
      ),
    }
  }
}

function share(part: number, whole: number): number | undefined {
  return whole === 0 ? undefined : part / whole
}
