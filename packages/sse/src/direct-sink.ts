import type { ServerResponse } from 'node:http'
import { ClientClosedError, currentDeadline, Deadline, type TimeBudgetError } from '@timebudget/core'
import { deadlineOf } from '@timebudget/core/server'
import { Connection } from './connection.ts'
import { errorDataOf } from './error-data.ts'
import type { EventSink } from './event-stream.ts'
import { encodeEvent, type OutgoingEvent } from './frame.ts'
import type { ResolvedStreamOptions } from './options.ts'
import { waitingBeat } from './waiting-beat.ts'

/** Sends straight to the client: the stream lives as long as its request. */
export class DirectSink implements EventSink {
  readonly id = undefined
  readonly deadline: Deadline
  readonly #connection: Connection
  readonly #isOwnDeadline: boolean
  #hasContent = false
  #isComplete = false

  constructor(response: ServerResponse, options: ResolvedStreamOptions) {
    const { clock } = options
    const ofRequest = deadlineOf(response.req)
    this.#isOwnDeadline = ofRequest === undefined
    this.deadline = ofRequest ?? Deadline.after(Infinity, { parent: currentDeadline(), clock })
    const beat = waitingBeat(this.deadline, () => !this.#hasContent)
    this.#connection = new Connection(response, { ...options, beat })
    const { signal } = this.deadline
    if (signal.aborted) this.#onDeadline()
    else signal.addEventListener('abort', this.#onDeadline)
    this.#connection.onClosed(() => this.#clientGone())
  }

  get closed(): boolean {
    return this.#isComplete || this.#connection.closed
  }

  onClosed(listener: () => void): void {
    this.#connection.onClosed(listener)
  }

  send(event: OutgoingEvent): Promise<boolean> {
    const frame = encodeEvent(event)
    if (this.closed) return Promise.resolve(false)
    this.#hasContent = true
    return this.#connection.write(frame)
  }

  end(event: OutgoingEvent): Promise<boolean> {
    const frame = encodeEvent(event)
    if (this.closed) return Promise.resolve(false)
    this.#isComplete = true
    return this.#connection.end(frame)
  }

  readonly #onDeadline = (): void => {
    const reason = this.deadline.reason
    const isTold = reason !== undefined && reason.code !== 'CLIENT_CLOSED' && !this.#isComplete
    this.#connection.cutOff(isTold ? errorFrame(reason) : undefined)
  }

  #clientGone(): void {
    const { deadline } = this
    deadline.signal.removeEventListener('abort', this.#onDeadline)
    // with the middleware, the request's own watch knows more of how its client left
    if (!this.#isOwnDeadline) return
    if (this.#isComplete) deadline.settle()
    else deadline.cancel(new ClientClosedError('the client went away', { elapsed: deadline.elapsed() }))
  }
}

/** The last event of a stream that was cut off for this reason. */
export function errorFrame(reason: TimeBudgetError): string {
  return encodeEvent({ event: 'error', data: errorDataOf(reason) })
}
