import type { Outcome } from '@timebudget/core'

/**
 * What the end of a call tells of how long it takes: it was `done`; it was cut off because it was `out_of_time`, or
 * because nobody waited for it any more (`left`), and takes longer in both cases; or `nothing`.
 */
export type Lesson = 'done' | 'out_of_time' | 'left' | 'nothing'

/** What each outcome teaches. */
export const lessons: Readonly<Record<Outcome, Lesson>> = {
  ok: 'done',
  degraded: 'done',
  deadline_exceeded: 'out_of_time',
  operation_timeout: 'out_of_time',
  total_timeout: 'out_of_time',
  first_token_timeout: 'out_of_time',
  client_closed: 'left',
  cancelled: 'left',
  shutdown: 'left',
  // a fault of what was called: when its idle timer fired says nothing of how long sound answers take
  stream_stalled: 'nothing',
  connect_timeout: 'nothing',
  error: 'nothing',
  upstream_error: 'nothing',
  // not begun
  short_circuited: 'nothing',
  shed: 'nothing',
  circuit_open: 'nothing',
}
