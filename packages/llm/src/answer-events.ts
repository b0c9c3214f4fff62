import { defineEvent, type EventChannel, type Outcome } from '@timebudget/core'
import type { Answer } from './answer.ts'
import type { Cost } from './prices.ts'

/** A question to a ladder has come to its end. */
export interface LlmAnswered {
  /** The ladder's name. */
  readonly operation: string
  readonly feature: string | undefined
  readonly tenant: string | undefined
  /** `ok`, `degraded`, or what it failed with. */
  readonly outcome: Outcome
  /** Absent if no rung had one, or its reader left. */
  readonly answer: Answer | undefined
  readonly error: unknown
  /** Of all its calls, also where they came to nothing; absent if no price is known. */
  readonly cost: Cost | undefined
}

/** Every question to a ladder, once, however it ends. */
export const llmAnswered: EventChannel<LlmAnswered> = defineEvent('timebudget:llm.answered')
