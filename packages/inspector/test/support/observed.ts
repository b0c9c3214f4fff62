import {
  Deadline,
  type Outcome,
  requestFinished,
  requestStarted,
  startOperation,
  type RunningOperation,
} from '@timebudget/core'
import { Observatory } from '../../src/observatory.ts'
import type { Snapshot, WholeRequest } from '../../src/snapshot.ts'
import { onEnd } from './server.ts'

/** Something that listens to this process's events until the test is over. */
export function observe(requests = 500): Observatory {
  const observatory = new Observatory({ requests })
  observatory.watch()
  onEnd(() => observatory.close())
  return observatory
}

/** A snapshot with all that is known of each request; the latest first. */
export function everything(
  observatory: Observatory,
): Omit<Snapshot, 'requests'> & { readonly requests: readonly WholeRequest[] } {
  const snapshot = observatory.snapshot()
  const requests = snapshot.requests.flatMap(({ id }) => observatory.snapshot({ request: id }).request ?? [])
  return { ...snapshot, requests }
}

/** A request as the server half tells of it, without a server. */
export class ToldRequest {
  readonly deadline: Deadline
  readonly request: object

  constructor(request: object = { method: 'GET', url: '/' }, budget = 60_000) {
    this.request = request
    this.deadline = Deadline.after(budget)
    const { deadline } = this
    requestStarted.publish(() => ({ deadline, source: 'default', clamped: false, request }))
  }

  start(name: string, options: Parameters<typeof startOperation>[1] = {}): RunningOperation {
    return startOperation(name, { deadline: this.deadline, ...options })
  }

  finish(outcome: Outcome = 'ok', status = 200): void {
    const { deadline, request } = this
    deadline.settle()
    requestFinished.publish(() => ({
      deadline,
      request,
      source: 'default',
      clamped: false,
      outcome,
      status,
      elapsed: deadline.elapsed(),
      budget: deadline.budget,
      overrun: 0,
      goneBy: undefined,
    }))
  }
}
