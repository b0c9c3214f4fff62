import type { ProviderFailure, TokenCounts } from './script.ts'

/** A token of an answer; `name` opens a call of that tool. */
export interface Token {
  readonly kind: 'text' | 'reasoning' | 'tool'
  readonly text: string
  readonly name?: string
}

/** How one API writes one answer; all methods but `errorBody` and `whole` give the text of server-sent events. */
export interface Dialect {
  /** What comes before the first token. */
  open(counts: TokenCounts): string
  token(token: Token): string
  /** A delta that holds nothing. */
  empty(): string
  keepAlive(): string
  failure(failure: ProviderFailure): string
  /** What comes after the last token, the last event of all included. */
  close(counts: TokenCounts): string
  /** The answer to a request for no stream. */
  whole(tokens: readonly Token[], counts: TokenCounts): object
  /** The body of an error answer. */
  errorBody(status: number, failure: ProviderFailure): object
}

/** What is known of the request that is answered. */
export interface Asked {
  readonly model: string
  /** A chat completion's `stream_options.include_usage`. */
  readonly includesUsage: boolean
}

/** The tokens of one kind, as one text. */
export function textOf(tokens: readonly Token[], kind: Token['kind']): string {
  return tokens
    .filter((token) => token.kind === kind)
    .map(({ text }) => text)
    .join('')
}

/** The name of the tool that is called, if one is. */
export function toolNameOf(tokens: readonly Token[]): string | undefined {
  return tokens.find(({ name }) => name !== undefined)?.name
}

/** A server-sent event. */
export function event(data: object | string, name?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${text}\n\n`
}
