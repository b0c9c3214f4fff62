import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'
import { type Deadline, deadlineBehind, type TimeBudgetError } from '@timebudget/core'
import { type CallServerOptions, OpenCall, resolveCallOptions } from '@timebudget/core/server'
import { connectErrorOf, isConnectTimeout } from './connect-status.ts'
import { CutOff } from './cut-off.ts'
import { outcomeOfStatus } from './rpc-status.ts'

export type { CallServerOptions }

type Call = Parameters<Interceptor>[0]
type Request = Parameters<Call>[0]
type Response = Awaited<ReturnType<Call>>
type StreamResponse = Response & { readonly stream: true }

/** The deadline behind the context that a handler has got, without any async context. */
export function deadlineFromCall({ signal }: { readonly signal: AbortSignal }): Deadline | undefined {
  return deadlineBehind(signal)
}

/**
 * Puts every call of a Connect router, over the Connect, gRPC and gRPC-web protocols and of all four kinds, under its
 * deadline: one that has passed on arrival reaches no handler, and at the deadline the caller gets `deadline_exceeded`
 * even if the handler hangs. The context's `signal` is the deadline's: it does not abort because the work went well.
 *
 *     connectNodeAdapter({ routes, interceptors: [deadlineServerInterceptor({ default: '3s' })] })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineServerInterceptor(options?: CallServerOptions): Interceptor {
  const resolved = resolveCallOptions(options)
  return function interceptUnderDeadline(next) {
    return async function serveUnderDeadline(request) {
      const headers = Object.fromEntries(request.header)
      const open = new OpenCall({ path: new URL(request.url).pathname, headers }, resolved)
      return new GovernedServerCall(open, request).serve(next)
    }
  }
}

/** Stands between Connect and the handler: what the handler does after the call's end reaches nobody. */
class GovernedServerCall {
  readonly #open: OpenCall
  readonly #request: Request
  readonly #cutOff = new CutOff()

  constructor(open: OpenCall, request: Request) {
    this.#open = open
    this.#request = request
    open.begin((reason) => this.#cutOff.cut(this.#answer(reason)))
    const { signal } = request
    const left = (): void => {
      // when the call is over Connect aborts it too, and nothing is left of this
      if (!isConnectTimeout(signal.reason)) open.clientGone('cancelled')
    }
    if (signal.aborted) left()
    else signal.addEventListener('abort', left)
  }

  async serve(next: Call): Promise<Response> {
    const open = this.#open
    const { signal } = open.deadline
    if (open.reason !== undefined) throw this.#answer(open.reason)
    try {
      const response = await this.#until(open.run(() => next({ ...this.#request, signal })))
      if (response.stream) return { ...response, message: this.#watched(response) }
      this.#finish(response.header)
      return response
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #watched(response: StreamResponse): AsyncIterable<never> {
    return {
      [Symbol.asyncIterator]: () => {
        const messages = (response.message as AsyncIterable<never>)[Symbol.asyncIterator]()
        return {
          next: () => this.#next(messages, response),
          return: async (value?: never) =>
            (await this.#open.run(() => messages.return?.(value))) ?? { done: true, value },
        }
      },
    }
  }

  async #next(messages: AsyncIterator<never>, response: StreamResponse): Promise<IteratorResult<never>> {
    try {
      // a generator runs in the context of whoever asks for its next value
      const message = await this.#until(this.#open.run(() => messages.next()))
      if (message.done === true) this.#finish(response.trailer)
      else if (this.#open.endIfLate()) throw this.#failure(undefined)
      return message
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #until<T>(result: Promise<T>): Promise<T> {
    const open = this.#open
    result.then(
      () => open.reason !== undefined && open.endIfLate(),
      () => undefined,
    )
    return this.#cutOff.until(result)
  }

  #finish(header: Headers): void {
    const open = this.#open
    const { serverTiming } = open
    if (!open.finish('ok')) throw this.#failure(undefined)
    if (serverTiming !== undefined) header.set('server-timing', serverTiming)
  }

  #failure(error: unknown): unknown {
    const open = this.#open
    const { serverTiming } = open
    if (
      !open.fail(error) &&
      open.finish(outcomeOfStatus(error instanceof ConnectError ? error.code : Code.Internal))
    ) {
      if (error instanceof ConnectError && serverTiming !== undefined)
        error.metadata.set('server-timing', serverTiming)
      return error
    }
    const { reason } = open
    return reason === undefined ? error : this.#answer(reason)
  }

  #answer(reason: TimeBudgetError): ConnectError {
    const error = connectErrorOf(reason)
    const { serverTiming } = this.#open
    if (serverTiming !== undefined) error.metadata.set('server-timing', serverTiming)
    return error
  }
}
