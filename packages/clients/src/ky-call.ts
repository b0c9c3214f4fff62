import { currentDeadline, Deadline, detach, isTimeBudgetError, runWithDeadline } from '@timebudget/core'
import type { ResponsePromise } from 'ky'
import { type Fetch, type FetchCall, wrapFetch } from './fetch.ts'
import type { ClientOptions } from './outgoing.ts'

/** What a call of ky's stands under. */
export interface KyCallBounds {
  readonly above: Deadline | undefined
  /** The caller's own. */
  readonly signal: AbortSignal | undefined
  readonly options: ClientOptions<FetchCall>
}

/** A call of ky's with all its attempts, each of which is an operation. */
export class KyCallUnderDeadline {
  /** What the call as a whole may take. */
  readonly deadline: Deadline
  readonly #bounds: KyCallBounds

  constructor(bounds: KyCallBounds) {
    const { above, signal, options } = bounds
    const all = Deadline.after(Infinity, { parent: above, signal })
    this.deadline = options.timeout === undefined ? all : all.child({ timeout: options.timeout, label: 'ky' })
    this.#bounds = bounds
  }

  /** What ky calls for each attempt, which ky itself gives `limit` milliseconds. */
  attemptWith(base: Fetch, limit: number | false | undefined): Fetch {
    const { signal, options } = this.#bounds
    const kys = typeof limit === 'number' ? limit : Infinity
    return async (input, init) => {
      const left = options.timeout === undefined ? Infinity : this.deadline.remaining()
      const timeout = Math.min(left, kys) === Infinity ? undefined : Math.min(left, kys)
      const governed = wrapFetch(alsoEndedBy(input, base), { operation: 'ky', ...options, timeout })
      // not the signal of ky's request, which is over before the body is: that ends the attempt below
      const forBody = { ...init, signal: signal ?? new AbortController().signal }
      try {
        return await this.#underCallers(() => governed(input, forBody))
      } catch (error) {
        throw this.#asKyKnowsIt(error, { isEndOfAttempt: kys < left })
      }
    }
  }

  /** Settles with ky's promise and its shortcuts, or by the deadline, whatever ky is at. */
  settling(start: () => ResponsePromise): ResponsePromise {
    const cutOff = new Promise<never>((_resolve, reject) => {
      const end = (): void => reject(this.#reasonForCaller())
      const { signal } = this.deadline
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
    cutOff.catch(ignore)
    try {
      const call = start()
      void call.then(ignore, ignore).then(() => this.deadline.settle())
      const inTime = async <T>(promise: Promise<T>): Promise<T> => {
        try {
          return await Promise.race([cutOff, promise])
        } catch (error) {
          throw this.deadline.expired ? this.#reasonForCaller() : error
        }
      }
      return settlingWith(call, inTime)
    } catch (error) {
      this.deadline.settle()
      throw error
    }
  }

  /** ky's hooks and pauses have no part in it: the attempts stand beside each other in the caller's ledger. */
  #underCallers<T>(work: () => T): T {
    if (this.#bounds.above !== undefined) return runWithDeadline(this.#bounds.above, work)
    return currentDeadline() === undefined ? work() : detach(work)
  }

  /** A caller that aborts expects its own reason back. */
  #reasonForCaller(): unknown {
    const { reason } = this.deadline
    const { signal } = this.#bounds
    return signal?.aborted === true && reason?.cause === signal.reason ? signal.reason : reason
  }

  /** ky tells by fetch's own error whether to try again: that is thrown, with ours put among its causes. */
  #asKyKnowsIt(error: unknown, { isEndOfAttempt }: { readonly isEndOfAttempt: boolean }): unknown {
    if (!isTimeBudgetError(error)) return error
    const failure = error.cause
    if (error.code === 'UPSTREAM_ERROR' && failure instanceof Error) {
      error.cause = failure.cause
      failure.cause = error
      return failure
    }
    // ky 1 would try again whatever it is
    if (error.code !== 'OPERATION_TIMEOUT' || !isEndOfAttempt) this.deadline.cancel(error)
    return error
  }
}

/** ky's promise with its shortcuts, each of which settles in time. */
function settlingWith(
  call: ResponsePromise,
  inTime: <T>(promise: Promise<T>) => Promise<T>,
): ResponsePromise {
  const promise = inTime(call)
  const shortcuts = Object.entries(call as unknown as Record<string, Shortcut>).map(([name, read]) => {
    const settling: Shortcut = (...args) => {
      promise.catch(ignore) // whoever takes the shortcut waits for that alone
      return inTime(read(...args))
    }
    return [name, settling] as const
  })
  return Object.assign(promise, Object.fromEntries(shortcuts)) as unknown as ResponsePromise
}

type Shortcut = (...args: unknown[]) => Promise<unknown>

/** The same fetch, whose attempts also end with the signal that ky's own timeout aborts. */
function alsoEndedBy(input: Parameters<Fetch>[0], base: Fetch): Fetch {
  if (!(input instanceof Request)) return base
  return (target, init) => {
    const controller = new AbortController()
    for (const signal of [init?.signal, input.signal]) {
      if (signal === undefined || signal === null) continue
      const abort = (): void => controller.abort(signal.reason)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
    }
    return base(target, { ...init, signal: controller.signal })
  }
}

function ignore(): void {}
