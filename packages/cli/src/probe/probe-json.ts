import { shownUrl, type Target } from '../request/target.ts'
import { exitCodeOf } from '../request/verdict.ts'
import { printable } from '../terminal/printable.ts'
import type { Probe } from './probe.ts'

/** What `probe --json` prints; milliseconds, to a tenth. What is not known is `null`. */
export function probeJson({ exchange, outcome, because, budget, operations }: Probe, target: Target): object {
  const { sentAt, firstByteAt, total, status, headers, events, bytes, stamps, error } = exchange
  const told = headers['x-deadline-outcome']
  return {
    url: shownUrl(target.url),
    method: target.method,
    budget,
    outcome,
    exitCode: exitCodeOf(outcome),
    because: because ?? null,
    status: status ?? null,
    deadlineOutcome: told === undefined ? null : printable(String(told), 64),
    sent: stamps,
    connect: tenths(sentAt),
    firstByte: tenths(firstByteAt),
    firstEvent: tenths(events?.firstAt),
    total: tenths(total),
    left: tenths(Math.max(0, budget - total)),
    overrun: tenths(Math.max(0, total - budget)),
    bytes,
    events: events?.count ?? null,
    operations: operations.map(({ path, start, spent, outcome: ended }) => ({
      path,
      start,
      spent: spent ?? null,
      outcome: ended ?? null,
    })),
    error: error === undefined ? null : { code: error.code, message: printable(error.message, 200) },
  }
}

/** To a tenth, or `null`. */
export function tenths(milliseconds: number | undefined): number | null {
  return milliseconds === undefined ? null : Math.round(milliseconds * 10) / 10
}
