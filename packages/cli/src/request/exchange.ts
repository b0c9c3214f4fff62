import type { IncomingHttpHeaders } from 'node:http'

/** How an exchange ended: `gave_up` is our patience, `stopped` the user. */
export type Ending = 'complete' | 'cut_off' | 'gave_up' | 'stopped' | 'failed' | 'not_sent'

/** One request and what became of it; milliseconds since it was begun, connecting included. */
export interface Exchange {
  readonly ending: Ending
  /** The deadline headers as they were sent. */
  readonly stamps: Readonly<Record<string, string>>
  /** When the connection stood and the request was written. */
  readonly sentAt: number | undefined
  /** When the response's headers were there. */
  readonly firstByteAt: number | undefined
  readonly total: number
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly bytes: number
  /** The first 8 KiB of the body; empty for a stream of events. */
  readonly body: string
  /** What is known of a stream of events. */
  readonly events: EventFacts | undefined
  /** What failed, where `ending` is `failed` or `cut_off`. */
  readonly error: ExchangeError | undefined
}

/** What a stream of events has sent. */
export interface EventFacts {
  readonly count: number
  readonly firstAt: number | undefined
  /** Data of its `error` event. */
  readonly error: string | undefined
}

/** Why there is no answer, or only a part of one. */
export interface ExchangeError {
  readonly code: string
  readonly message: string
}
