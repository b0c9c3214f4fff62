import { isAtTheEdge, type Outcome, type RunningOperation, type TimeBudgetError } from '@timebudget/core'
import type { Readable } from 'node:stream'
import { blameUpstreamNow } from './failure.ts'

/** A response, or what is read in its place: the unzipped body, for instance. */
export type NodeBody = Readable & {
  readonly socket?: { readonly destroyed: boolean } | null
  readonly complete?: boolean
  readonly req?: { readonly aborted: boolean }
}

/** A response whose body the operation lasts as long as. */
export interface GovernedResponse {
  /** Ends it by the deadline. */
  cut(reason: TimeBudgetError): void
  /** Notes what has broken the connection, and returns what to say of it. */
  broken(error: Error): unknown
  destroy(error: Error): void
}

/** Ends the operation with a body: with `outcome` after its last byte, else with what broke it off. */
export function governBody(body: NodeBody, running: RunningOperation, outcome: Outcome): GovernedResponse {
  let held: ((told: unknown) => void) | undefined
  let breakage: unknown
  body.once('end', () => running.end(outcome))
  const destroy = body._destroy
  // not `destroy`: Node would take a response that is destroyed later for one that has ended well
  body._destroy = function destroyUnderDeadline(error, callback) {
    // without an error, with the connection still there, or by abort() it is our own program that has read enough
    const isOwn = error === null || body.socket?.destroyed === false || body.req?.aborted === true
    if (isOwn) running.end('cancelled', error)
    destroy.call(body, error, (failure) => {
      // Node passes no failure on where nobody listens for it
      const tell = (told: unknown): void => callback(failure instanceof Error ? (told as Error) : failure)
      if (running.isOver()) tell(breakage ?? failure)
      else if (isAtTheEdge(running.deadline)) held = tell
      else tell(blameUpstreamNow(running, error as Error))
    })
  }
  return {
    cut(reason) {
      if (held === undefined) body.destroy(reason)
      else held(reason)
    },
    broken(error) {
      // it can be read to its end all the same
      if (body.complete === true) return error
      breakage = blameUpstreamNow(running, error)
      return breakage
    },
    destroy: (error) => body.destroy(error),
  }
}
