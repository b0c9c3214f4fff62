import { type Outcome, outcomeOf, type RunningOperation, runWithDeadline } from '@timebudget/core'
import type { Answer, JobTicket, RungAttempt } from './answer.ts'
import { type LlmAnswered, llmAnswered } from './answer-events.ts'
import { CallLog } from './call-log.ts'
import type { LlmCall } from './call-record.ts'
import type { Payer } from './cost-book.ts'
import type { Ask, ResolvedLadderOptions } from './ladder.ts'
import type { Cost } from './prices.ts'

/** The text that a rung has given so far, and how it ended. */
export interface Said {
  readonly rung: string
  text: string
  /** Whether a tool was called for. */
  callsTool: boolean
  complete: boolean
  outcome: Outcome
  job: JobTicket | undefined
}

/** What becomes of one question: each try, each call and its cost, and the answer in the end, told once. */
export class AnswerRecord {
  readonly answer: Promise<Answer>
  readonly calls: CallLog = new CallLog()
  readonly payer: Payer
  readonly #options: ResolvedLadderOptions
  readonly #firstRung: string | undefined
  readonly #attempts: RungAttempt[] = []
  readonly #startedAt: number
  #resolve: (answer: Answer) => void = ignore
  #reject: (reason: unknown) => void = ignore

  constructor(options: ResolvedLadderOptions, ask: Ask, firstRung: string | undefined) {
    this.#options = options
    this.#firstRung = firstRung
    this.#startedAt = options.clock.now()
    this.payer = { feature: ask.feature ?? options.feature, tenant: ask.tenant ?? options.tenant }
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // whoever only reads the tokens hears of a failure there
    this.answer.catch(ignore)
  }

  note(attempt: RungAttempt): void {
    this.#attempts.push({ ...attempt, spent: toTenths(attempt.spent) })
  }

  noteCall(rung: string, call: LlmCall): void {
    this.calls.add(rung, call)
    this.#options.cost?.record(call)
  }

  /** @throws the refusal, if whoever pays has spent the budget. */
  assertMaySpend(): void {
    const refusal = this.#options.cost?.refuse(this.payer)
    if (refusal !== undefined) throw refusal
  }

  /** Ends the question with what was said. */
  finish(running: RunningOperation, said: Said): void {
    const isLater = said.rung !== this.#firstRung
    const degraded = isLater || !said.complete
    const failedFirst = this.#attempts.findLast(
      ({ rung, outcome }) => rung === this.#firstRung && outcome !== 'ok',
    )
    if (said.complete) this.#options.cost?.noteSuccess(this.payer)
    const outcome = running.deadline.reason?.outcome ?? (degraded ? 'degraded' : 'ok')
    const { usage, timings } = this.calls.summary(said.rung)
    const { connect, firstToken } = timings
    const answer: Answer = {
      text: said.text,
      complete: said.complete,
      degraded,
      rung: said.rung,
      reason: said.complete ? (isLater ? failedFirst?.outcome : undefined) : said.outcome,
      attempts: this.#attempts,
      usage,
      cost: this.#cost,
      timings: {
        connect: connect === undefined ? undefined : toTenths(connect),
        firstToken: firstToken === undefined ? undefined : toTenths(firstToken),
        total: toTenths(this.#options.clock.now() - this.#startedAt),
      },
      job: said.job,
    }
    this.#tell(outcome, { answer, error: undefined, running })
    running.end(outcome)
    this.#resolve(answer)
  }

  /** Ends the question without an answer; returns what to throw. */
  fail(failure: unknown, running?: RunningOperation): unknown {
    const error = running?.deadline.reason ?? failure
    this.#tell(outcomeOf(error), { answer: undefined, error, running })
    running?.fail(error)
    this.#reject(error)
    return error
  }

  get #cost(): Cost | undefined {
    const { cost } = this.#options
    return cost === undefined ? undefined : this.calls.cost(cost)
  }

  /** Before its operation ends, and under its deadline, so that whoever listens can add to what is known of that. */
  #tell(
    outcome: Outcome,
    {
      answer,
      error,
      running,
    }: Pick<LlmAnswered, 'answer' | 'error'> & {
      readonly running: RunningOperation | undefined
    },
  ): void {
    const { operation } = this.#options
    const { feature, tenant } = this.payer
    const publish = (): void =>
      llmAnswered.publish(() => ({ operation, feature, tenant, outcome, answer, error, cost: this.#cost }))
    if (running === undefined) publish()
    else runWithDeadline(running.deadline, publish)
  }
}

/** Milliseconds as people read them: no clock tells more. */
function toTenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10
}

function ignore(): void {}
