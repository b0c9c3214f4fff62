import type { Outcome, RunningOperation, TimeBudgetError } from '@timebudget/core'
import type { IncomingMessage } from 'node:http'
import { isAtTheEdge } from './failure.ts'

/** A response whose body the operation lasts as long as. */
export interface GovernedResponse {
  /** Ends it by the deadline. */
  cut(reason: TimeBudgetError): void
  destroy(error: Error): void
}

/** Ends the operation with the response's body: with `outcome` after its last byte, else with what broke it off. */
export function governResponse(
  response: IncomingMessage,
  running: RunningOperation,
  outcome: Outcome,
): GovernedResponse {
  let held: ((reason: TimeBudgetError) => void) | undefined
  if (hasNoBody(response)) running.end(outcome)
  else {
    response.once('end', () => running.end(outcome))
    const destroy = response._destroy
    // not `destroy`: Node would take a response that is destroyed later for one that has ended well
    response._destroy = function destroyUnderDeadline(error, callback) {
      // without an error, or with the connection still there, it is our own program that has read enough
      if (error == null || response.socket?.destroyed === false) running.end('cancelled', error)
      destroy.call(response, error, (failure) => {
        // Node passes no failure on where nobody listens for it
        const tell = (reason: TimeBudgetError | undefined): void =>
          callback(failure == null ? failure : (reason ?? failure))
        if (!running.isOver() && isAtTheEdge(running.deadline)) held = tell
        else tell(running.end('upstream_error', failure))
      })
    }
  }
  return {
    cut(reason) {
      if (held === undefined) response.destroy(reason)
      else held(reason)
    },
    destroy: (error) => response.destroy(error),
  }
}

function hasNoBody({
  statusCode,
  req,
}: IncomingMessage & { readonly req?: { readonly method?: string } }): boolean {
  return statusCode === 204 || statusCode === 304 || req?.method === 'HEAD'
}
