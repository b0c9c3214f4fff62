import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  CancelledError,
  ClientClosedError,
  type Clock,
  type ClockTimer,
  currentDeadline,
  Deadline,
  detach,
} from '@timebudget/core'
import { deadlineOf } from '@timebudget/core/server'
import { errorDataOf } from '../error-data.ts'
import type { EventSink } from '../event-stream.ts'
import { encodeEvent, type OutgoingEvent } from '../frame.ts'
import type { ResolvedStreamOptions, ResumeOptions } from '../options.ts'
import { follow } from './follow.ts'
import type { Recording } from './store.ts'

/** What resumable work may take where neither its options nor its request say so. */
const defaultBudget = '5m'

/** Milliseconds between two looks at whether a stream is still read elsewhere. */
const shortestPause = 1_000

/**
 * Sends into a recording that connections read, the request's own among them: the work outlives its request by the
 * store's grace, and ends at once when it is stopped.
 */
export class ResumableSink implements EventSink {
  readonly id: string
  readonly deadline: Deadline
  readonly #recording: Recording
  readonly #grace: number
  readonly #clock: Clock
  readonly #closeListeners = new Set<() => void>()
  #graceTimer: ClockTimer | undefined
  #seq = 0
  #closed = false

  constructor(
    response: ServerResponse,
    { store, budget, signal, id }: ResumeOptions,
    options: ResolvedStreamOptions,
  ) {
    const { clock } = options
    const ofRequest = deadlineOf(response.req) ?? currentDeadline()
    const left = ofRequest?.remaining() ?? Infinity
    this.id = id ?? randomUUID()
    this.#grace = store.grace
    this.#clock = clock
    this.deadline = detach(() =>
      Deadline.after(budget ?? (left === Infinity ? defaultBudget : left), {
        signal,
        clock,
        label: 'stream',
      }),
    )
    this.#recording = store.open(this.id, {
      stop: () => this.deadline.cancel(new CancelledError('the stream was stopped by its user')),
      unwatched: () => this.#beginGrace(),
    })
    if (this.deadline.signal.aborted) this.#onDeadline()
    else this.deadline.signal.addEventListener('abort', this.#onDeadline)
    if (this.#recording.isResumable) {
      void this.send({ event: 'stream', data: { id: this.id, grace: Math.round(this.#grace) } })
    }
    const frames = this.#recording.read(0)
    if (frames !== undefined) follow(response, { frames, after: 0, deadline: this.deadline, options })
  }

  get closed(): boolean {
    return this.#closed || this.deadline.expired
  }

  onClosed(listener: () => void): void {
    if (this.#closed) listener()
    else this.#closeListeners.add(listener)
  }

  async send(event: OutgoingEvent): Promise<boolean> {
    if (this.closed) return false
    await this.#append(event, { isLast: false })
    return !this.closed
  }

  async end(event: OutgoingEvent): Promise<boolean> {
    if (this.closed) return false
    const appended = this.#append(event, { isLast: true })
    this.#close()
    this.deadline.settle()
    await appended
    return true
  }

  #append(event: OutgoingEvent, { isLast }: { readonly isLast: boolean }): Promise<void> {
    const text = encodeEvent({ ...event, id: String(this.#seq + 1) })
    this.#seq += 1
    return this.#recording.append({ seq: this.#seq, text, isLast })
  }

  readonly #onDeadline = (): void => {
    if (this.#closed) return
    const { reason } = this.deadline
    void this.#append({ event: 'error', data: errorDataOf(reason) }, { isLast: true })
    this.#close()
  }

  #close(): void {
    this.#closed = true
    this.#graceTimer?.cancel()
    this.deadline.signal.removeEventListener('abort', this.#onDeadline)
    for (const listener of this.#closeListeners) listener()
    this.#closeListeners.clear()
  }

  #beginGrace(): void {
    this.#askAfter(this.#recording.isResumable ? this.#grace : 0)
  }

  #askAfter(delay: number): void {
    if (this.#closed) return
    this.#graceTimer?.cancel()
    this.#graceTimer = this.#clock.wakeAfter(delay, () => void this.#endGrace())
  }

  async #endGrace(): Promise<void> {
    const isWatched = await this.#recording.isWatched()
    if (this.#closed) return
    // somebody who follows from another process leaves without a word to this one
    if (isWatched) this.#askAfter(Math.max(this.#grace, shortestPause))
    else {
      const message = `nobody came back for the stream within ${Math.round(this.#grace)} ms`
      this.deadline.cancel(new ClientClosedError(message, { elapsed: this.deadline.elapsed() }))
    }
  }
}
