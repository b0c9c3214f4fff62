import type { Outcome } from '@timebudget/core'
import { cleanText, shorten } from '../clean-text.ts'
import type { FinishedCall, FinishedQuestion } from '../model-events.ts'
import type { CostView, ModelFigures, ModelView } from '../snapshot.ts'
import { LatestDurations } from './latest-durations.ts'
import { OutcomeTally } from './outcome-tally.ts'
import { RecentMap } from './recent-map.ts'
import { tenths } from './tenths.ts'

const mostModels = 50
const mostCurrencies = 8

/** A user who left is no failure, and no success. */
const abandoned: ReadonlySet<Outcome> = new Set(['client_closed', 'cancelled'])

const timesUp: ReadonlySet<Outcome> = new Set(['total_timeout', 'operation_timeout', 'deadline_exceeded'])

/** Whether its time was up before its first token, by whichever limit; only streams have one. */
function isWithoutFirstToken({ outcome, streams = true, timings }: FinishedCall): boolean {
  if (outcome === 'first_token_timeout') return true
  return streams && timings.firstToken === undefined && timesUp.has(outcome)
}

class ModelSum {
  readonly provider: string
  readonly model: string
  readonly outcomes = new OutcomeTally()
  readonly firstTokens = new LatestDurations()
  calls = 0
  inputTokens = 0
  outputTokens = 0

  constructor({ provider, model }: FinishedCall) {
    this.provider = cleanText(provider)
    this.model = cleanText(model ?? '')
  }
}

/** How answers by models are doing, counted as `Figures` of `@timebudget/llm` counts; `null` where no model is used. */
export class ModelBook {
  readonly #models = new RecentMap<string, ModelSum>(mostModels)
  readonly #spent = new RecentMap<string, { currency: string; amount: number; estimated: boolean }>(
    mostCurrencies,
  )
  readonly #firstTokens = new LatestDurations()
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

  addQuestion({ outcome, answer, cost }: FinishedQuestion): void {
    if (cost !== undefined) this.#addCost(cost)
    if (abandoned.has(outcome)) {
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

  addCall(call: FinishedCall): void {
    const { outcome, timings, usage, sdkRetry } = call
    // neither was made
    if (sdkRetry || outcome === 'short_circuited') return
    const sum = this.#modelOf(call)
    sum.outcomes.add(outcome)
    sum.calls += 1
    sum.inputTokens += usage.inputTokens ?? 0
    sum.outputTokens += usage.outputTokens ?? 0
    const hasNone = isWithoutFirstToken(call)
    // one that was cut off before its first token might have waited for ever
    const firstToken = timings.firstToken ?? (hasNone ? Infinity : undefined)
    if (firstToken !== undefined) {
      sum.firstTokens.add(firstToken)
      this.#firstTokens.add(firstToken)
    }
    if (abandoned.has(outcome)) return
    this.#calls += 1
    if (hasNone) this.#firstTokenTimeouts += 1
    if (outcome === 'stream_stalled') this.#stalls += 1
  }

  view(): ModelFigures | null {
    const models = this.#models.values()
    if (models.length === 0 && this.#questions + this.#abandoned === 0) return null
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
      firstTokenP95: tenths(this.#firstTokens.quantile(0.95) ?? undefined),
      costs: this.#spent.values().map((cost) => this.#costView(cost)),
      models: models.map(modelView).sort((one, other) => other.calls - one.calls),
    }
  }

  #modelOf(call: FinishedCall): ModelSum {
    const key = `${shorten(call.provider)} ${shorten(call.model ?? '')}`
    return this.#models.of(key, () => new ModelSum(call))
  }

  #addCost({ amount, currency, estimated }: NonNullable<FinishedQuestion['cost']>): void {
    if (!Number.isFinite(amount)) return
    const made = { currency: cleanText(currency, 12), amount: 0, estimated: false }
    const spent = this.#spent.of(shorten(currency, 12), () => made)
    spent.amount += amount
    spent.estimated ||= estimated
  }

  #costView({
    currency,
    amount,
    estimated,
  }: {
    currency: string
    amount: number
    estimated: boolean
  }): CostView {
    return { currency, spent: amount, perSuccess: share(amount, this.#main + this.#degraded), estimated }
  }
}

function modelView({
  provider,
  model,
  calls,
  firstTokens,
  inputTokens,
  outputTokens,
  outcomes,
}: ModelSum): ModelView {
  return {
    provider,
    model,
    calls,
    firstTokenP50: tenths(firstTokens.quantile(0.5) ?? undefined),
    firstTokenP95: tenths(firstTokens.quantile(0.95) ?? undefined),
    inputTokens,
    outputTokens,
    outcomes: outcomes.view(),
  }
}

function share(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}
