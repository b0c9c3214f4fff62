import { CancelledError, isAtTheEdge, type Outcome, type RunningOperation } from '@timebudget/core'
import { failureOf, isOutOfTime } from './failure.ts'
import type { Destination, PeerAnswer } from './outgoing.ts'

/** How undici is told to end a call. */
export type Abort = (reason?: Error) => void
type Tell = (reason: Error) => void

/** Says how a call ends for us that was answered so. */
export type AnswerReader = (answer: PeerAnswer) => Outcome

/** One attempt of a call, and where it goes. */
export interface Attempt extends Destination {
  readonly origin: string | URL | undefined
  readonly path: string
}

/** A call that undici makes for us, of which it is this that ends it, once. */
export class GuardedCall {
  readonly running: RunningOperation
  readonly #readAnswer: AnswerReader
  #outcome: Outcome = 'ok'
  #isHeld = false
  #isAbandoned = false
  #stop: Tell = ignore
  #tell: Tell = ignore
  /** The attempt that is on. */
  attempt: Attempt
  /** Why nothing more is let through, although undici may still be at it; whatever it begins is aborted. */
  closedBy: { readonly reason: Error } | undefined

  constructor(call: {
    readonly running: RunningOperation
    readonly attempt: Attempt
    readonly readAnswer: AnswerReader
  }) {
    this.running = call.running
    this.attempt = call.attempt
    this.#readAnswer = call.readAnswer
  }

  /** `stop` ends what undici does, `tell` the wait of who asked. */
  begin({ stop, tell }: { readonly stop: Tell; readonly tell: Tell }): void {
    this.#stop = stop
    this.#tell = tell
    this.running.onCutOff((reason) => this.#cutOff(reason))
  }

  /** Whether what undici says now is for nobody. */
  get isClosed(): boolean {
    return this.closedBy !== undefined || this.#isHeld
  }

  /** A peer that gives up right before our deadline is held back: the deadline, any moment now, is the answer. */
  answered(status: number, header: (name: string) => string | undefined): void {
    if (status < 200) return
    this.#outcome = this.#readAnswer(new AttemptAnswer(this.attempt, status, header))
    const { deadline } = this.running
    if (deadline.expired) this.#cutOff(this.running.end(this.#outcome))
    else this.#isHeld = isOutOfTime(this.#outcome) && isAtTheEdge(deadline)
  }

  /** Passes the end on, unless the deadline has come before it. */
  completed(pass: () => void): void {
    const reason = this.running.end(this.#outcome)
    if (reason === undefined) return pass()
    this.closedBy = { reason }
    // the fetch of Node 20 waits for ever if it hears of an error in the same turn as of the headers
    setImmediate(() => this.#tell(reason))
  }

  #cutOff(reason: Error | undefined): void {
    if (reason === undefined || this.closedBy !== undefined) return
    this.closedBy = { reason }
    this.#stop(reason)
    this.#tell(reason)
  }

  /** Who asked has had enough: that is no failure of the upstream's, and comes back as undici has it. */
  abandoned(reason: Error | undefined, abort: Abort): void {
    if (this.isClosed) return
    this.#isAbandoned = true
    abort(reason)
    // undici says nothing while it waits to try again
    if (!this.isClosed) this.failed(reason ?? new CancelledError('the call was aborted'))
  }

  failed(error: Error): void {
    if (this.#isAbandoned) {
      this.running.end('cancelled', error)
      this.closedBy = { reason: error }
      return this.#tell(error)
    }
    void failureOf(this.running, error).then((failure) => {
      if (this.isClosed) return
      this.closedBy = { reason: failure as Error }
      this.#tell(failure as Error)
    })
  }
}

/** A peer's answer to one attempt. */
class AttemptAnswer implements PeerAnswer {
  readonly status: number
  readonly serverTiming: string | undefined
  readonly deadlineOutcome: string | undefined
  readonly #attempt: Attempt

  constructor(attempt: Attempt, status: number, header: (name: string) => string | undefined) {
    this.status = status
    this.serverTiming = header('server-timing')
    this.deadlineOutcome = header('x-deadline-outcome')
    this.#attempt = attempt
  }

  get url(): URL {
    return this.#attempt.url
  }
}

function ignore(): void {}
