import { randomUUID } from 'node:crypto'
import {
  CancelledError,
  currentDeadline,
  type Outcome,
  outcomeOf,
  runWithDeadline,
  type RunningOperation,
  startOperation,
  type TimeBudgetError,
  UpstreamError,
} from '@timebudget/core'
import type { Answer } from './answer.ts'
import { AnswerRecord, type Said } from './answer-record.ts'
import { AttemptNotes } from './attempt-notes.ts'
import { type CallSettings, withOwnSettings } from './call-settings.ts'
import type { Ask, ResolvedLadderOptions, Token } from './ladder.ts'
import { isContent, type ModelEvent } from './model-events.ts'
import type { Rung, RungAnswer } from './rungs/rung.ts'
import { PiecesReader } from './pieces-reader.ts'
import type { Reserves } from './reserves.ts'
import { Turn } from './turn.ts'
import { UntilCutOff } from './until-cut-off.ts'

/** What is asked, and whether the user sees each piece of the answer as it comes. */
interface Question<Input> {
  readonly input: Input
  readonly ask: Ask
  readonly shows: boolean
}

/** What a ladder is made of. */
export interface Steps<Input> {
  readonly rungs: readonly Rung<Input>[]
  readonly reserves: Reserves<Input>
  readonly options: ResolvedLadderOptions
}

/** One question's way down a ladder. */
export class Climb<Input> {
  readonly #rungs: readonly Rung<Input>[]
  readonly #reserves: Reserves<Input>
  readonly #options: ResolvedLadderOptions
  readonly #question: Question<Input>
  readonly #record: AnswerRecord
  readonly #key: string
  readonly #running: RunningOperation | undefined
  readonly #refusal: unknown
  /** A model may have done the work already. */
  #mayHaveActed = false
  /** A rung was cut off: what comes after it begins as late as timers are. */
  #isLate = false
  /** Of an answer that broke off where nobody saw it yet: better than none. */
  #spare: Said | undefined
  #unread: PiecesReader<Token> | undefined

  constructor({ rungs, reserves, options }: Steps<Input>, question: Question<Input>) {
    this.#rungs = rungs
    this.#reserves = reserves
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
    const { calls } = this.#record
    const known = calls.count
    const notes = this.#notesOf(rung)
    let turn: Turn | undefined
    let events: AsyncIterator<ModelEvent> | undefined
    let attempt: number | undefined
    try {
      if (rung.asksModel) this.#record.assertMaySpend()
      turn = this.#begin(rung, running, index)
      const own = turn.operation
      const cutOff = new UntilCutOff<TimeBudgetError>((tell) => own.onCutOff(tell))
      const opened = await cutOff.of(this.#open(rung, { turn, notes, index }))
      if (opened === undefined) {
        own.end('short_circuited')
        notes.close({ attempt: 0, outcome: 'short_circuited', error: undefined })
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
        if (token.type !== 'reasoning') turn.shown()
        yield token
      }
      if (rung.asksModel && said.text === '' && !said.callsTool) throw saidNothing(rung.name, own)
      said.complete = true
      const reason = own.end(index === 0 ? 'ok' : 'degraded')
      if (reason !== undefined) throw reason
      notes.close({ attempt, outcome: 'ok', error: undefined })
      if (rung.asksModel && !said.callsTool && this.#isMain(rung)) this.#teach(said.text)
      return true
    } catch (thrown) {
      const own = turn?.operation
      const error = calls.blame(own, thrown, known)
      const outcome = outcomeOf(error)
      own?.end(outcome, error)
      this.#mayHaveActed ||= rung.asksModel && own !== undefined && calls.wasSent(known, error)
      this.#isLate ||= turn?.wasCutOff ?? false
      notes.close({ attempt: own === undefined ? 0 : attempt, outcome, error })
      throw error
    } finally {
      turn?.close()
      void events?.return?.()?.catch(ignore)
    }
  }

  #notesOf({ name }: Rung<Input>): AttemptNotes {
    const { clock } = this.#options
    return new AttemptNotes(name, { note: (attempt) => this.#record.note(attempt), now: () => clock.now() })
  }

  #begin(rung: Rung<Input>, running: RunningOperation, index: number): Turn {
    const remaining = running.deadline.remaining()
    const limits = this.#reserves.limitsOf(index, {
      remaining,
      isLate: this.#isLate,
      shows: this.#question.shows,
    })
    try {
      return new Turn(rung, limits, running)
    } catch (error) {
      const deadline = this.#question.ask.deadline ?? currentDeadline()
      if (deadline !== undefined) this.#reserves.warnIfNeverEnough(index, deadline)
      throw error
    }
  }

  async #open(
    rung: Rung<Input>,
    { turn, notes, index }: { readonly turn: Turn; readonly notes: AttemptNotes; readonly index: number },
  ): Promise<RungAnswer | undefined> {
    const { input } = this.#question
    const idempotencyKey = index === 0 ? this.#key : `${this.#key}.${rung.name}`
    const { idempotent } = this.#options
    const { operation: own, reserve } = turn
    return inside(own, { ...this.#settingsOf(rung), idempotencyKey }, async () =>
      rung.open(input, {
        deadline: own.deadline,
        reserve,
        signal: own.signal,
        idempotencyKey,
        idempotent,
        noteBegun: (attempt) => notes.noteBegun(attempt),
        noteAttempt: (attempt) => notes.noteAttempt(attempt),
      }),
    )
  }

  #settingsOf(rung: Rung<Input>): CallSettings {
    const { feature, tenant } = this.#record.payer
    return { feature, tenant, onCall: (call) => this.#record.noteCall(rung.name, call) }
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
}

/** Runs what is a rung's own work as such: in its operation, under its deadline, its calls to models noted as its. */
function inside<T>(own: RunningOperation, settings: CallSettings, work: () => T): T {
  return own.within(() => runWithDeadline(own.deadline, () => withOwnSettings(settings, work)))
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
