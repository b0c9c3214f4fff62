import type { Outcome } from '@timebudget/core'
import type { Usage } from './usage.ts'

/** When the parts of a call were reached, in milliseconds. */
export interface CallTimings {
  /** How long its connection took, TLS included; 0 if one was there, absent if none was made, or by a fetch of one's own. */
  readonly connect?: number | undefined
  /** From the call to its response's headers. */
  readonly headers?: number | undefined
  /** From the call to the first bytes of its answer, which need not hold any content; only of streams. */
  readonly firstChunk?: number | undefined
  /** From the call to the first piece of content; only of streams. */
  readonly firstToken?: number | undefined
  /** From the call to its end. */
  readonly total: number
}

/** What became of one call to a model, whatever the SDK made of it. */
export interface LlmCall {
  readonly operation: string
  /** `openai`, `anthropic`, ...: by the host, or the host itself. */
  readonly provider: string
  readonly model: string | undefined
  /** Without query. */
  readonly url: string
  readonly task: string | undefined
  readonly feature: string | undefined
  readonly tenant: string | undefined
  /** Whether a stream was asked for: only streams have a first token. */
  readonly streams?: boolean | undefined
  /** Which attempt of the same work it was, from 1. */
  readonly attempt: number
  readonly outcome: Outcome
  /** What it failed with: one of our errors, unless it never was a call. */
  readonly error: unknown
  /** Whether the answer is there to its end. */
  readonly complete: boolean
  readonly status: number | undefined
  /** Milliseconds after which the provider says that a retry may succeed. */
  readonly retryAfter: number | undefined
  /** The provider's own word on whether a retry makes sense, where it gave one (`x-should-retry`). */
  readonly shouldRetry?: boolean | undefined
  /** The provider's own word for its error: `insufficient_quota`, `overloaded_error`, ... */
  readonly providerCode?: string | undefined
  readonly usage: Usage
  /** Pieces of text, reasoning and tool arguments that came. */
  readonly contentChunks: number
  /** Characters in them. */
  readonly textLength: number
  readonly timings: CallTimings
  /** Whether it was an SDK's own retry, and therefore refused. */
  readonly sdkRetry: boolean
}

const timesUp: ReadonlySet<Outcome> = new Set(['total_timeout', 'operation_timeout', 'deadline_exceeded'])

/** Whether its time was up before its first token, by whichever limit. */
export function isWithoutFirstToken({ outcome, streams = true, timings }: LlmCall): boolean {
  if (outcome === 'first_token_timeout') return true
  return streams && timings.firstToken === undefined && timesUp.has(outcome)
}

/** Whether its user left or stopped it: that is no failure. */
export function isAbandoned(outcome: Outcome): boolean {
  return outcome === 'client_closed' || outcome === 'cancelled'
}
