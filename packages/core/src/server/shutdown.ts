import type { Clock } from '../clock.ts'
import { Deadline, internals } from '../deadline.ts'
import { ShutdownError } from '../errors.ts'
import { follow } from '../signal-links.ts'

/** What goes down with the process. */
export interface Stoppable {
  stop(reason: ShutdownError): void
}

/** One shutdown signal and the requests that run until it aborts, or a little longer. */
export class Shutdown {
  readonly #running = new Set<Stoppable>()
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal, { grace, clock }: { readonly grace: number; readonly clock: Clock }) {
    this.#signal = signal
    follow(signal, () => {
      const end = Deadline.after(grace, { clock, label: 'shutdownGrace' })
      const isOver = (): boolean => this.#running.size === 0
      const reason = internals.watch(
        end,
        { isOver, deadlineEnded: () => this.#stopAll(grace) },
        { hold: false },
      )
      if (reason !== undefined) this.#stopAll(grace)
    })
  }

  /** Whether the signal has aborted, so that connections are not to be kept for more. */
  get hasBegun(): boolean {
    return this.#signal.aborted
  }

  /** Why a new request is not taken on, once the signal has aborted. */
  get refusal(): ShutdownError | undefined {
    return this.hasBegun ? new ShutdownError('the server is shutting down') : undefined
  }

  enter(request: Stoppable): void {
    this.#running.add(request)
  }

  leave(request: Stoppable): void {
    this.#running.delete(request)
  }

  #stopAll(grace: number): void {
    for (const request of this.#running) {
      request.stop(
        new ShutdownError(`the server shut down and the grace of ${Math.round(grace)} ms has passed`),
      )
    }
  }
}
