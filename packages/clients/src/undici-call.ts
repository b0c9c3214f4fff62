import { CancelledError, isAtTheEdge, type Outcome, type RunningOperation } from '@timebudget/core'
import { failureOf, isOutOfTime } from './failure.ts'
import {
  type Destination,
  headersNow,
  outcomeOfAnswer,
  type PeerAnswer,
  type ResolvedClientOptions,
} from './outgoing.ts'
import type { Stamping } from './undici-headers.ts'

/** How undici is told to end a call. */
export type Abort = (reason?: Error) => void

/** One attempt of a call, and where it goes. */
export interface Attempt extends Destination {
  readonly origin: string | URL | undefined
  readonly path: string
}

/** What is needed to make a call under its operation. */
export interface CallParts {
  readonly running: RunningOperation
  readonly attempt: Attempt
  readonly resolved: Pick<ResolvedClientOptions<never>, 'propagatesTo' | 'emit' | 'trusts' | 'headerNames'>
}

/** A call that undici makes for us, of which it is this that ends it, once. */
export abstract class GuardedCall implements Stamping {
  readonly running: RunningOperation
  readonly #resolved: CallParts['resolved']
  #outcome: Outcome = 'ok'
  #isHeld = false
  #isAbandoned = false
  /** The attempt that is on. */
  attempt: Attempt
  /** Why nothing more is let through, although undici may still be at it; whatever it begins is aborted. */
  closedBy: { readonly reason: Error } | undefined

  constructor({ running, attempt, resolved }: CallParts) {
    this.running = running
    this.attempt = attempt
    this.#resolved = resolved
  }

  /** Ends what undici does, if it has begun. */
  protected abstract stop(reason: Error): void
  /** Ends the wait of who asked. */
  protected abstract tell(reason: Error): void

  /** From now on the end of the deadline ends the call. */
  begin(): this {
    this.running.onCutOff((reason) => this.#cutOff(reason))
    return this
  }

  get replaced(): readonly string[] {
    return this.#resolved.headerNames
  }

  /** @throws the deadline's reason where its timer is late: a call without its deadline would be let go on by the peer. */
  stamps(): Readonly<Record<string, string>> {
    const { deadline } = this.running
    const { reason } = deadline
    if (reason !== undefined) throw reason
    return headersNow(this.attempt, deadline, this.#resolved)
  }

  /** Whether what undici says now is for nobody. */
  get isClosed(): boolean {
    return this.closedBy !== undefined || this.#isHeld
  }

  /** A peer that gives up right before our deadline is held back: the deadline, any moment now, is the answer. */
  protected answered(answer: PeerAnswer): void {
    if (answer.status < 200) return
    this.#outcome = outcomeOfAnswer(answer, this.running, this.#resolved)
    const { deadline } = this.running
    if (deadline.expired) this.#cutOff(this.running.end(this.#outcome))
    else this.#isHeld = isOutOfTime(this.#outcome) && isAtTheEdge(deadline)
  }

  /** Whether the end is to be passed on: the deadline has not come before it. */
  protected completed(): boolean {
    const reason = this.running.end(this.#outcome)
    if (reason === undefined) return true
    this.#completedLate(reason)
    return false
  }

  #completedLate(reason: Error): void {
    this.closedBy = { reason }
    // the fetch of Node 20 waits for ever if it hears of an error in the same turn as of the headers
    setImmediate(() => this.tell(reason))
  }

  #cutOff(reason: Error | undefined): void {
    if (reason === undefined || this.closedBy !== undefined) return
    this.closedBy = { reason }
    this.stop(reason)
    this.tell(reason)
  }

  /** Who asked has had enough: that is no failure of the upstream's, and comes back as undici has it. */
  abandoned(reason: Error | undefined, abort: Abort): void {
    if (this.isClosed) return
    this.#isAbandoned = true
    abort(reason)
    // undici says nothing while it waits to try again
    if (!this.isClosed) this.failed(reason ?? new CancelledError('the call was aborted'))
  }

  protected failed(error: Error): void {
    if (this.#isAbandoned) {
      this.running.end('cancelled', error)
      this.closedBy = { reason: error }
      return this.tell(error)
    }
    void failureOf(this.running, error).then((failure) => {
      if (this.isClosed) return
      this.closedBy = { reason: failure as Error }
      this.tell(failure as Error)
    })
  }
}

/** What an answer to an attempt says of itself, whichever generation's headers it has. */
export abstract class AttemptAnswer<Headers> implements PeerAnswer {
  readonly status: number
  readonly #attempt: Attempt
  readonly #headers: Headers

  constructor(attempt: Attempt, status: number, headers: Headers) {
    this.status = status
    this.#attempt = attempt
    this.#headers = headers
  }

  /** All values of that name, in lower case, as a list. */
  protected abstract header(headers: Headers, name: string): string | undefined

  get url(): URL {
    return this.#attempt.url
  }
  get serverTiming(): string | undefined {
    return this.header(this.#headers, 'server-timing')
  }
  get deadlineOutcome(): string | undefined {
    return this.header(this.#headers, 'x-deadline-outcome')
  }
}
