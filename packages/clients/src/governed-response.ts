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

const governedBy: unique symbol = Symbol('timebudget.governed')
type Governable = NodeBody & { [governedBy]?: GovernedBody }
type Destroy = Readable['_destroy']
type Destroyed = Parameters<Destroy>[1]

/** Ends the operation with a body: with `outcome` after its last byte, else with what broke it off. */
export function governBody(body: Governable, running: RunningOperation, outcome: Outcome): GovernedResponse {
  const governed = new GovernedBody(body, running, outcome)
  // not `destroy`: Node would take a response that is destroyed later for one that has ended well
  if (body[governedBy] === undefined) {
    body[governedBy] = governed
    body.on('end', endUnderDeadline)
    body._destroy = destroyUnderDeadline
  } else {
    body.on('end', () => governed.ended())
    body._destroy = (error, callback) => governed.destroying(error, callback)
  }
  return governed
}

// Shared by all bodies, as the methods of governed requests are, and for the same reason.
function endUnderDeadline(this: Governable): void {
  this[governedBy]?.ended()
}

function destroyUnderDeadline(this: Governable, error: Error | null, callback: Destroyed): void {
  this[governedBy]?.destroying(error, callback)
}

class GovernedBody implements GovernedResponse {
  readonly #body: NodeBody
  readonly #running: RunningOperation
  readonly #outcome: Outcome
  readonly #ownDestroy: Destroy
  #held: ((told: unknown) => void) | undefined
  #breakage: unknown

  constructor(body: NodeBody, running: RunningOperation, outcome: Outcome) {
    this.#body = body
    this.#running = running
    this.#outcome = outcome
    this.#ownDestroy = body._destroy
  }

  /** Its last byte has been read. */
  ended(): void {
    this.#running.end(this.#outcome)
  }

  destroying(error: Error | null, callback: Destroyed): void {
    const body = this.#body
    const running = this.#running
    // the usual end: it has been read, and Node tidies up
    if (error === null && running.isOver() && this.#breakage === undefined)
      return this.#ownDestroy.call(body, error, callback)
    this.#destroyingEarly(error, callback)
  }

  #destroyingEarly(error: Error | null, callback: Destroyed): void {
    const body = this.#body
    const running = this.#running
    // without an error, with the connection still there, or by abort() it is our own program that has read enough
    const isOwn = error === null || body.socket?.destroyed === false || body.req?.aborted === true
    if (isOwn) running.end('cancelled', error)
    this.#ownDestroy.call(body, error, (failure) => {
      // Node passes no failure on where nobody listens for it
      const tell = (told: unknown): void => callback(failure instanceof Error ? (told as Error) : failure)
      if (running.isOver()) tell(this.#breakage ?? failure)
      else if (isAtTheEdge(running.deadline)) this.#held = tell
      else tell(blameUpstreamNow(running, error as Error))
    })
  }

  cut(reason: TimeBudgetError): void {
    if (this.#held === undefined) this.#body.destroy(reason)
    else this.#held(reason)
  }

  broken(error: Error): unknown {
    // it can be read to its end all the same
    if (this.#body.complete === true) return error
    this.#breakage = blameUpstreamNow(this.#running, error)
    return this.#breakage
  }

  destroy(error: Error): void {
    this.#body.destroy(error)
  }
}
