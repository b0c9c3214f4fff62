import type { Usage } from '../usage.ts'

/** What a provider says of its own failure. */
export interface ProviderError {
  readonly message: string
  /** Its code, else its type. */
  readonly code: string | undefined
}

/** Counts that came from the provider; a later one of the same name replaces an earlier one. */
export type ReportedUsage = Omit<Usage, 'estimated'>

/** What one event of a stream, or a whole answer, says. */
export interface Reading {
  /** `nothing` for a role, an empty delta or a ping. */
  readonly kind: 'content' | 'reasoning' | 'tool' | 'nothing' | 'error'
  /** What was said, where it is text. */
  readonly text?: string | undefined
  readonly usage?: ReportedUsage | undefined
  /** Why the model has finished, once it has. */
  readonly finish?: string | undefined
  readonly error?: ProviderError | undefined
  /** Whether nothing comes after it. */
  readonly terminal?: boolean | undefined
}

/** How one API says things. */
export interface Protocol {
  readonly name: 'openai-chat' | 'openai-responses' | 'anthropic'
  /** Reads an event's data, which was JSON. */
  readEvent(data: unknown): Reading
  /** Reads the body of an answer that is no stream. */
  readWhole(body: unknown): Reading
}

export const nothing: Reading = Object.freeze({ kind: 'nothing' })
