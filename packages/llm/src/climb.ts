import { randomUUID } from 'node:crypto'
import {
  CancelledError,
  type Outcome,
  outcomeOf,
  runWithDeadline,
  type RunningOperation,
  startOperation,
  type TimeBudgetError,
  UpstreamError,
} from '@timebudget/core'
import type { Answer, RungAttempt } from './answer.ts'
import { AnswerRecord, type Said } from './answer-record.ts'
import { type CallSettings, withCallSettings } from './call-settings.ts'
import type { Ask, ResolvedLadderOptions, Token } from './ladder.ts'
import { isContent, type ModelEvent } from './model-events.ts'
import type { Rung, RungAnswer } from './rungs/rung.ts'
import { PiecesReader } from './pieces-reader.ts'
import { UntilCutOff } from './until-cut-off.ts'

/** What is asked, and whether the user sees each piece of the answer as it comes. */
interface Question<Input> {
  readonly input: Input
  readonly ask: Ask
  readonly shows: boolean
}

/** One question's way down a ladder. */
export class Climb<Input> {
  readonly #rungs: readonly Rung<Input>[]
  readonly #options: ResolvedLadderOptions
  readonly #question: Question<Input>
  readonly #record: AnswerRecord
  readonly #key: string
  readonly #running: RunningOperation | undefined
  readonly #refusal: unknown
  /** A model may have done the work already. */
  #mayHaveActed = false
  /** Of an answer that broke off where nobody saw it yet: better than none. */
  #spare: Said | undefined
  #unread: PiecesReader<Token> | undefined

  constructor(rungs: readonly Rung<Input>[], options: ResolvedLadderOptions, question: Question<Input>) {
    this.#rungs = rungs
    this.#options = options
    this.#question = question
    this.#key = question.ask.idempotencyKey ?? randomUUID()
    this.#record = new AnswerRecord(options, question.ask, rungs[0]?.name)
    const { deadline, signal } = question.ask
    try {
      this.#running = startOperation(options.operation, { deadline, signal })
    } catch (error) {
      this.#refusal = this.#record.fail(error)
      return
    }
    const running = this.#running
    const reader = new PiecesReader({
      pieces: this.#pieces(running),
      leave: () => running.deadline.cancel(leftBy(running)),
    })
    this.#unread = reader
    running.onCutOff(() => reader.workEnded())
  }

  get answer(): Promise<Answer> {
    return this.#record.answer
  }

  /**
   * The answer's pieces, once; the answer itself when they end.
   * @throws TypeError if they are read already.
   */
  tokens(): AsyncIterableIterator<Token> {
    if (this.#running === undefined) return failing(this.#refusal)
    const reader = this.#unread
    if (reader === undefined) throw new TypeError('an answer has one reader: its pieces are read already')
    this.#unread = undefined
    return reader
  }

  async *#pieces(running: RunningOperation): AsyncGenerator<Token> {
    try {
      if (running.deadline.reason !== undefined) throw running.deadline.reason
      this.#record.finish(running, yield* this.#climb(running))
    } catch (error) {
      throw this.#record.fail(error, running)
    }
  }

  async *#climb(running: RunningOperation): AsyncGenerator<Token, Said> {
    let lastError: unknown
    for (const [index, rung] of this.#rungs.entries()) {
      if (rung.asksModel && this.#mayHaveActed && !this.#options.idempotent) continue
      const said: Said = {
        rung: rung.name,
        text: '',
        callsTool: false,
        complete: false,
        outcome: 'ok',
        job: undefined,
      }
      try {
        if (yield* this.#ask(rung, { running, index, said })) return said
      } catch (error) {
        lastError = error
        const ended = running.deadline.reason
        if (ended !== undefined && ended.code !== 'DEADLINE_EXCEEDED') throw ended
        if (this.#isKept(said, error, ended)) return said
        if (ended !== undefined) throw ended
      }
    }
    if (this.#spare !== undefined) return this.#spare
    throw lastError instanceof Error ? lastError : new Error('no rung had an answer', { cause: lastError })
  }

  /** Whether a text that was cut off is the answer all the same. */
  #isKept(said: Said, error: unknown, ended: TimeBudgetError | undefined): boolean {
    said.outcome = outcomeOf(error)
    // half a tool call cannot be taken back either, once it was seen
    if (said.text === '' && !(said.callsTool && this.#question.shows)) return false
    if (this.#options.partial === 'throw') {
      if (this.#question.shows) throw error
      return false
    }
    if (this.#question.shows || ended !== undefined || isTimeout(said.outcome)) return true
    this.#spare ??= said
    return false
  }

  /** Whether the rung has answered; throws what it failed with. */
  async *#ask(
    rung: Rung<Input>,
    {
      running,
      index,
      said,
    }: { readonly running: RunningOperation; readonly index: number; readonly said: Said },
  ): AsyncGenerator<Token, boolean> {
    const begunAt = this.#options.clock.now()
    const { calls } = this.#record
    const [known, noted] = [calls.count, this.#record.attempts]
    let own: RunningOperation | undefined
    let events: AsyncIterator<ModelEvent> | undefined
    let attempt = 0
    try {
      if (rung.asksModel) this.#record.assertMaySpend()
      own = this.#begin(rung, running, index)
      const cutOff = new UntilCutOff((tell) => own?.onCutOff(tell))
      const opened = await cutOff.of(this.#open(rung, own, index))
      if (opened === undefined) {
        own.end('short_circuited')
        this.#note(rung, { attempt: 0, outcome: 'short_circuited', error: undefined, begunAt })
        return false
      }
      attempt = opened.attempt
      said.job = opened.job
      const pieces = (events = opened.events[Symbol.asyncIterator]())
      const settings = this.#settingsOf(rung)
      for (;;) {
        // what makes the pieces runs when they are asked for
        const { done, value } = await cutOff.of(inside(own, settings, () => pieces.next()))
        if (done === true) break
        const token = tokenOf(value, rung.name)
        if (token === undefined) continue
        if (token.type === 'text') said.text += token.text
        if (token.type === 'tool') said.callsTool = true
        yield token
      }
      if (rung.asksModel && said.text === '' && !said.callsTool) throw saidNothing(rung.name, own)
      said.complete = true
      const reason = own.end(index === 0 ? 'ok' : 'degraded')
      if (reason !== undefined) throw reason
      this.#note(rung, { attempt, outcome: 'ok', error: undefined, begunAt })
      if (rung.asksModel && !said.callsTool && this.#isMain(rung)) this.#teach(said.text)
      return true
    } catch (thrown) {
      const error = calls.blame(own, thrown, known)
      const outcome = outcomeOf(error)
      own?.end(outcome, error)
      this.#mayHaveActed ||= rung.asksModel && own !== undefined && calls.wasSent(known, error)
      const isNoted = attempt === 0 && this.#record.attempts > noted
      const nth = own === undefined ? 0 : Math.max(1, attempt)
      if (!isNoted) this.#note(rung, { attempt: nth, outcome, error, begunAt })
      throw error
    } finally {
      own?.deadline.cancel()
      void events?.return?.()?.catch(ignore)
    }
  }

  #begin(rung: Rung<Input>, running: RunningOperation, index: number): RunningOperation {
    const later = this.#reserveAfter(index)
    const isLast = index === this.#rungs.length - 1
    // what the others keep must not keep the last resort from its turn
    const reserve =
      rung.answersAtOnce || (isLast && !rung.asksModel)
        ? Math.min(later, Math.max(0, running.deadline.remaining() - rung.reserve))
        : later
    return startOperation(rung.name, {
      deadline: running.deadline,
      timeout: rung.timeout,
      floor: rung.floor,
      reserve,
    })
  }

  async #open(rung: Rung<Input>, own: RunningOperation, index: number): Promise<RungAnswer | undefined> {
    const { input } = this.#question
    const idempotencyKey = index === 0 ? this.#key : `${this.#key}.${rung.name}`
    const { idempotent } = this.#options
    return inside(own, { ...this.#settingsOf(rung), idempotencyKey }, async () =>
      rung.open(input, {
        deadline: own.deadline,
        signal: own.signal,
        idempotencyKey,
        idempotent,
        noteAttempt: ({ attempt, error, spent }) =>
          this.#record.note({ rung: rung.name, attempt, outcome: outcomeOf(error), error, spent }),
      }),
    )
  }

  #settingsOf(rung: Rung<Input>): CallSettings {
    const { feature, tenant } = this.#record.payer
    return { feature, tenant, onCall: (call) => this.#record.noteCall(rung.name, call) }
  }

  #reserveAfter(index: number): number {
    return this.#rungs.slice(index + 1).reduce((sum, { reserve }) => sum + reserve, this.#options.reserve)
  }

  /** Whether no model is asked before this one: a cache may be. */
  #isMain(rung: Rung<Input>): boolean {
    return rung === this.#rungs.find(({ asksModel }) => asksModel)
  }

  #teach(text: string): void {
    for (const rung of this.#rungs) {
      try {
        rung.learn?.(this.#question.input, text)
      } catch (error) {
        // the answer is there all the same
        process.emitWarning(`the rung '${rung.name}' could not learn: ${String(error)}`, 'TimeBudgetWarning')
      }
    }
  }

  #note(
    rung: Rung<Input>,
    { begunAt, ...attempt }: Omit<RungAttempt, 'rung' | 'spent'> & { readonly begunAt: number },
  ): void {
    this.#record.note({ rung: rung.name, ...attempt, spent: this.#options.clock.now() - begunAt })
  }
}

/** Runs what is a rung's own work as such: in its operation, under its deadline, its calls to models noted as its. */
function inside<T>(own: RunningOperation, settings: CallSettings, work: () => T): T {
  return own.within(() => runWithDeadline(own.deadline, () => withCallSettings(settings, work)))
}

function tokenOf(event: ModelEvent, rung: string): Token | undefined {
  if (!isContent(event)) return undefined
  if (event.type !== 'tool') return { type: event.type, text: event.text, rung }
  const { index, id, name } = event
  return { type: 'tool', text: event.arguments, rung, tool: { index, id, name } }
}

/** The pieces of an answer that was not begun. */
function failing(reason: unknown): AsyncIterableIterator<never> {
  return {
    next: () => Promise.reject(reason),
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function saidNothing(rung: string, own: RunningOperation): UpstreamError {
  return new UpstreamError(`${rung} has finished without a word`, {
    operation: rung,
    elapsed: own.deadline.elapsed(),
  })
}

function leftBy({ entry }: RunningOperation): CancelledError {
  return new CancelledError('the answer was left before its end', { operation: entry.name })
}

function isTimeout(outcome: Outcome): boolean {
  return (
    outcome === 'stream_stalled' ||
    outcome === 'total_timeout' ||
    outcome === 'operation_timeout' ||
    outcome === 'deadline_exceeded'
  )
}

function ignore(): void {}
