import { defineEvent, type EventChannel, type Outcome } from '@timebudget/core'

/** What is read of a finished call to a model; never its prompt, its answer or its tenant. Milliseconds. */
export interface FinishedCall {
  readonly provider: string
  readonly model: string | undefined
  readonly outcome: Outcome
  readonly streams?: boolean | undefined
  readonly usage: {
    readonly inputTokens?: number | undefined
    readonly outputTokens?: number | undefined
  }
  readonly timings: { readonly firstToken?: number | undefined; readonly total: number }
  /** An SDK's own retry, refused before it was made. */
  readonly sdkRetry: boolean
}

/** What is read of a question to a ladder. */
export interface FinishedQuestion {
  readonly outcome: Outcome
  readonly answer: { readonly complete: boolean; readonly degraded: boolean } | undefined
  readonly cost:
    | { readonly amount: number; readonly currency: string; readonly estimated: boolean }
    | undefined
}

// by name: the package that publishes them is none that this one may know
export const modelCallFinished: EventChannel<FinishedCall> = defineEvent('timebudget:llm.call.finished')
export const questionFinished: EventChannel<FinishedQuestion> = defineEvent('timebudget:llm.answered')
