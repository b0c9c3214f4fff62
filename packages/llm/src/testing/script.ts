import type { Duration } from '@timebudget/core'

/** What a provider says when it fails: in an error answer's body, or as an event within a stream. */
export interface ProviderFailure {
  readonly message: string
  /** `server_error`, `overloaded_error`, ... */
  readonly type?: string | undefined
  /** `insufficient_quota`, `rate_limit_exceeded`, ... */
  readonly code?: string | undefined
}

/** One thing a provider does while it answers; `every` waits that long before each of its parts. */
export type Step =
  /** Text, one token for each word or member. */
  | { readonly text: string | readonly string[]; readonly every?: Duration }
  /** That many tokens of one short word each. */
  | { readonly tokens: number; readonly every?: Duration }
  /** Reasoning, one token for each word or member. */
  | { readonly reasoning: string | readonly string[]; readonly every?: Duration }
  /** A call of a tool, its arguments in pieces. */
  | {
      readonly tool: { readonly name: string; readonly arguments: readonly string[] }
      readonly every?: Duration
    }
  /** Deltas that hold nothing. */
  | { readonly empty: number; readonly every?: Duration }
  /** Comments, or pings where the provider sends those. */
  | { readonly keepAlive: number; readonly every?: Duration }
  | { readonly wait: Duration }
  /** Sent as it is: malformed events, other providers' fields. */
  | { readonly raw: string }
  /** An error event. */
  | { readonly failure: ProviderFailure }

/** Tokens a provider charges for. */
export interface TokenCounts {
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly reasoning: number
}

/**
 * How an answer ends: `complete`; `cut`, a proper end of the body without the provider's own last event; `drop` and
 * `reset`, a connection that is closed or reset; `silence`; `linger`, the last event and then an open connection.
 */
export type Ending = 'complete' | 'cut' | 'drop' | 'reset' | 'silence' | 'linger'

/**
 * What a provider does with a request. Asked for no stream, it takes as long, and then sends all at once; the endings
 * other than `complete` and `linger` then come after half of the body.
 */
export interface Script {
  /** Before the response's headers; `Infinity` for a provider that never answers. */
  readonly headersAfter?: Duration | undefined
  /** 200, or that of an error answer. */
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The body of an error answer. */
  readonly failure?: ProviderFailure | undefined
  /** By default a short greeting. */
  readonly steps?: readonly Step[] | undefined
  readonly ending?: Ending | undefined
  /** By default what was sent, and a quarter of the request's length. */
  readonly usage?: Partial<TokenCounts> | undefined
  /** Each write is sent in pieces of so many bytes, which splits events and characters. */
  readonly pieceSize?: number | undefined
}

/** Accepts the connection and never answers. */
export function neverAnswers(): Script {
  return { headersAfter: Infinity }
}

/** Sends its headers, and nothing more. */
export function headersThenSilence(): Script {
  return { steps: [], ending: 'silence' }
}

/** Sends that many tokens, and nothing more. */
export function tokensThenSilence(tokens: number, every: Duration = 1): Script {
  return { steps: [{ tokens, every }], ending: 'silence' }
}

/** Sends that many tokens, one every so often, and ends well. */
export function steadyTokens(tokens: number, every: Duration = 0): Script {
  return { steps: [{ tokens, every }] }
}

/** Keeps the connection alive for ever, and says nothing. */
export function keepAliveForEver(every: Duration): Script {
  return { steps: [{ keepAlive: Infinity, every }] }
}

/** Sends that many tokens and ends as if all had been said. */
export function cutAfter(tokens: number, ending: 'cut' | 'drop' | 'reset' = 'cut'): Script {
  return { steps: [{ tokens, every: 1 }], ending }
}

/** An error answer, shaped as the provider's own. */
export function errorAnswer(
  status: number,
  failure: Partial<ProviderFailure> = {},
  headers: Readonly<Record<string, string>> = {},
): Script {
  return { status, headers, failure: { message: `answered ${status} as its script says`, ...failure } }
}
