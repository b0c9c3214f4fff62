import { defineEvent, type EventChannel, type Outcome } from '@timebudget/core'

/** What telemetry reads of a finished call to a model; `@timebudget/llm` publishes it. Milliseconds. */
export interface FinishedCall {
  readonly operation: string
  readonly provider: string
  readonly model: string | undefined
  readonly url: string
  readonly feature: string | undefined
  readonly attempt: number
  readonly outcome: Outcome
  readonly error: unknown
  readonly complete: boolean
  readonly status: number | undefined
  readonly usage: {
    readonly inputTokens?: number | undefined
    readonly outputTokens?: number | undefined
    readonly estimated: boolean
  }
  readonly contentChunks: number
  readonly timings: {
    readonly connect?: number | undefined
    readonly headers?: number | undefined
    readonly firstChunk?: number | undefined
    readonly firstToken?: number | undefined
    readonly total: number
  }
  /** Whether it was an SDK's own retry, refused before it was made. */
  readonly sdkRetry: boolean
}

/** What telemetry reads of a question to a ladder. */
export interface FinishedQuestion {
  readonly operation: string
  readonly feature: string | undefined
  readonly outcome: Outcome
  readonly answer:
    | {
        readonly complete: boolean
        readonly degraded: boolean
        readonly rung: string
        readonly reason?: unknown
      }
    | undefined
  readonly cost:
    | { readonly amount: number; readonly currency: string; readonly estimated?: boolean }
    | undefined
}

// by name: the direction of imports does not let telemetry know the package that publishes them
export const llmCallFinished: EventChannel<FinishedCall> = defineEvent('timebudget:llm.call.finished')
export const llmAnswered: EventChannel<FinishedQuestion> = defineEvent('timebudget:llm.answered')
