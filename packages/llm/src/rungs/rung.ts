import type { Deadline, Floor } from '@timebudget/core'
import type { JobTicket } from '../answer.ts'
import type { ModelEvent } from '../model-events.ts'

/** What a rung may use to answer. */
export interface RungScope {
  /** Ends when the time is up that is the rung's, or the user has gone. */
  readonly deadline: Deadline
  /**
   * Milliseconds before the deadline at which it is over for a rung that has shown nothing yet: the rungs after it need
   * them. 0 for `run`, where nothing is shown, and whose deadline leaves them anyhow.
   */
  readonly reserve: number
  readonly signal: AbortSignal
  /** One for all attempts of this rung. */
  readonly idempotencyKey: string
  readonly idempotent: boolean
  /** Told of each attempt as it begins, from 1. */
  noteBegun(attempt: number): void
  /** Told of each attempt that failed. */
  noteAttempt(attempt: { readonly attempt: number; readonly error: unknown; readonly spent: number }): void
}

/** What a rung says. */
export interface RungAnswer {
  /** Its attempt that answered, from 1. */
  readonly attempt: number
  readonly events: AsyncIterable<ModelEvent>
  readonly job?: JobTicket | undefined
}

/** One way to answer. */
export interface Rung<Input> {
  readonly name: string
  /** It is not begun with less than this. */
  readonly floor: Floor | undefined
  /** Milliseconds that the rungs before it leave to it; 1,000 by default, or an equal share if that is less. */
  readonly reserve?: number | undefined
  /** The most it takes, ms; what is left by default. */
  readonly timeout?: number | undefined
  /** Whether a model is asked: that costs, may act, and must not be done twice where that is not wanted. */
  readonly asksModel: boolean
  /** Whether it waits for nobody: it has its turn however little time is left. */
  readonly answersAtOnce: boolean
  /** Settles with the first thing it has to say; `undefined` if it has no answer to this input. */
  open(input: Input, scope: RungScope): Promise<RungAnswer | undefined>
  /** Told of a model's complete answer, to give it again. */
  learn?(input: Input, text: string): void
}

/** @throws TypeError unless it is a text that is not empty. */
export function expectName(name: unknown): void {
  if (typeof name !== 'string' || name === '') throw new TypeError('name: expected a text that is not empty')
}

/** An answer that is there as a whole. */
export async function* wholeText(text: string): AsyncGenerator<ModelEvent> {
  if (text !== '') yield { type: 'text', text }
  yield { type: 'finish', reason: 'stop' }
}
