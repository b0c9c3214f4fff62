import {
  currentDeadline,
  Deadline,
  detach,
  isTimeBudgetError,
  runWithDeadline,
  type TimeBudgetError,
} from '@timebudget/core'
import type { Input, KyInstance, Options, ResponsePromise } from 'ky'
import { type Fetch, wrapFetch } from './fetch.ts'
import { retryWithin } from './ky-retry.ts'
import {
  type ClientOptions,
  deadlineOfCall,
  type ResolvedClientOptions,
  resolveClientOptions,
} from './outgoing.ts'

export type { ClientOptions }

/** The call a `ky` was asked for. */
export interface KyCall {
  readonly url: URL
  readonly method: string
}

/**
 * The same ky instance, and what is extended from it, with every call under the ambient deadline or that of the signal it
 * is given, its retries and their pauses included. Each attempt is an operation in the ledger.
 *
 *     const api = attachDeadline(ky.extend({ prefixUrl: 'http://index.internal' }), { operation: 'search' })
 *
 * A call then fails with BudgetTooSmallError, before any I/O, if less than the floor is left, with OperationTimeoutError
 * after its own timeout, and with the deadline's reason once that has ended. What fails by itself fails with the error
 * that ky has for it, and UpstreamError is among its causes. ky's own `timeout` counts if it was set: its default of 10 s
 * is none under a deadline.
 * @throws TypeError that names the option which cannot be read.
 */
export function attachDeadline(instance: KyInstance, options: ClientOptions<KyCall> = {}): KyInstance {
  const resolved = resolveClientOptions(options, 'ky')
  const defaults = defaultsOf(instance)
  const governed =
    (call: KyMethod): KyMethod =>
    (input, init = {}) => {
      const given = init.signal ?? (input instanceof Request ? input.signal : undefined)
      const deadline = deadlineOfCall(given)
      if (deadline === undefined && resolved.timeout === undefined) return call(input, init)
      const bounded = new BoundedCall({ deadline, signal: given, options, resolved })
      const own = bounded.deadline
      const limit = init.timeout ?? defaults.timeout ?? (own.remaining() === Infinity ? undefined : false)
      return bounded.settling(() =>
        call(input, {
          ...init,
          ...(limit === undefined ? {} : { timeout: limit }),
          fetch: bounded.attemptWith(init.fetch ?? defaults.fetch ?? globalThis.fetch),
          signal: own.signal,
          ...retryWithin(own, { init, defaults, floor: resolved.floor }),
        }),
      )
    }
  return new Proxy(instance, {
    apply: (target, _self, args: Parameters<KyMethod>) => governed(target)(...args),
    get(target, name) {
      if (name === 'extend') {
        return (...args: Parameters<KyInstance['extend']>) => attachDeadline(target.extend(...args), options)
      }
      const member: unknown = Reflect.get(target, name)
      return verbs.has(name) ? governed(member as KyMethod) : member
    },
  })
}

type KyMethod = (input: Input, init?: Options) => ResponsePromise
const verbs: ReadonlySet<string | symbol> = new Set(['get', 'post', 'put', 'patch', 'head', 'delete'])

/** ky shows what an instance was made with to whoever extends it. */
function defaultsOf(instance: KyInstance): Options {
  let defaults: Options = {}
  instance.extend((given) => {
    defaults = given
    return {}
  })
  return defaults
}

/** A call with all its attempts. */
class BoundedCall {
  /** What the call as a whole may take. */
  readonly deadline: Deadline
  readonly #above: Deadline | undefined
  readonly #signal: AbortSignal | undefined
  readonly #options: ClientOptions<KyCall>
  readonly #hasTimeout: boolean

  constructor(call: {
    readonly deadline: Deadline | undefined
    readonly signal: AbortSignal | undefined
    readonly options: ClientOptions<KyCall>
    readonly resolved: ResolvedClientOptions<KyCall>
  }) {
    const { timeout } = call.resolved
    const all = Deadline.after(Infinity, { parent: call.deadline, signal: call.signal })
    this.deadline = timeout === undefined ? all : all.child({ timeout, label: 'ky' })
    this.#above = call.deadline
    this.#signal = call.signal
    this.#options = call.options
    this.#hasTimeout = timeout !== undefined
  }

  /** What ky calls for each attempt. */
  attemptWith(base: Fetch): Fetch {
    return async (input, init) => {
      const timeout = this.#hasTimeout ? this.deadline.remaining() : undefined
      const governed = wrapFetch(alsoEndedBy(input, base), { operation: 'ky', ...this.#options, timeout })
      // not the signal of ky's request, which is over before the body is: that ends the attempt below
      const signal = this.#signal ?? new AbortController().signal
      try {
        const response = await this.#under(() => governed(input, { ...init, signal }))
        if (!response.ok) void readAhead(response)
        return response
      } catch (error) {
        throw this.#forKy(error)
      }
    }
  }

  /** Settles with ky's promise and its shortcuts, or by the deadline, whatever ky is at. */
  settling(start: () => ResponsePromise): ResponsePromise {
    const { signal } = this.deadline
    const cutOff = new Promise<never>((_resolve, reject) => {
      const end = (): void => reject(this.#reasonFor(signal.reason as TimeBudgetError))
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
    cutOff.catch(ignore)
    try {
      const call = start()
      call.then(ignore, ignore).finally(() => this.deadline.settle())
      const promise = Promise.race([cutOff, call])
      for (const [name, read] of Object.entries(call) as [
        string,
        (...args: unknown[]) => Promise<unknown>,
      ][]) {
        const shortcut = (...args: unknown[]): Promise<unknown> => {
          promise.catch(ignore) // whoever takes the shortcut waits for that alone
          return Promise.race([cutOff, read(...args)])
        }
        Object.defineProperty(promise, name, { value: shortcut, enumerable: true })
      }
      return promise as ResponsePromise
    } catch (error) {
      this.deadline.settle()
      throw error
    }
  }

  #under<T>(work: () => T): T {
    if (this.#above !== undefined) return runWithDeadline(this.#above, work)
    return currentDeadline() === undefined ? work() : detach(work)
  }

  /** A caller that aborts expects its own reason back. */
  #reasonFor(reason: TimeBudgetError): unknown {
    const isOwn = this.#signal?.aborted === true && reason.cause === this.#signal.reason
    return isOwn ? this.#signal.reason : reason
  }

  #forKy(error: unknown): unknown {
    if (!isTimeBudgetError(error)) return error
    if (error.code !== 'UPSTREAM_ERROR') {
      this.deadline.cancel(error) // nothing that could be tried again
      return error
    }
    // ky tells by fetch's own error whether to try again
    const failure = error.cause
    if (!(failure instanceof Error)) return failure
    error.cause = failure.cause
    failure.cause = error
    return failure
  }
}

/** The same fetch, whose attempts also end with the signal that ky's own timeout aborts. */
function alsoEndedBy(input: Parameters<Fetch>[0], base: Fetch): Fetch {
  if (!(input instanceof Request)) return base
  return (target, init) => {
    const controller = new AbortController()
    for (const signal of [init?.signal, input.signal]) {
      if (signal == null) continue
      const abort = (): void => controller.abort(signal.reason)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
    }
    return base(target, { ...init, signal: controller.signal })
  }
}

// more than an error's body needs
const mostReadAhead = 65_536

/** ky leaves the body of what it retries or throws unread: read, it ends the operation and frees the connection. */
async function readAhead(response: Response): Promise<void> {
  let left = mostReadAhead
  try {
    for await (const chunk of response.clone().body ?? []) {
      left -= chunk.byteLength
      if (left <= 0) return
    }
  } catch {
    // whoever reads the response itself is told
  }
}

function ignore(): void {}
