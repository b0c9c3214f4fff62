/** Every way an operation or a request can end. */
export const outcomes = [
  'ok',
  'degraded',
  'error',
  'deadline_exceeded',
  'short_circuited',
  'operation_timeout',
  'client_closed',
  'cancelled',
  'shed',
  'circuit_open',
  'shutdown',
  'connect_timeout',
  'first_token_timeout',
  'stream_stalled',
  'total_timeout',
  'upstream_error',
] as const

/** How an operation or a request ended; one word of a closed list. */
export type Outcome = (typeof outcomes)[number]

const known: ReadonlySet<string> = new Set(outcomes)

/** Whether a text, such as one that a peer sent, is a word of the list. */
export function isOutcome(text: string | undefined): text is Outcome {
  return text !== undefined && known.has(text)
}
