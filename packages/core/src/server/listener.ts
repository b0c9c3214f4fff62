import type { IncomingMessage, ServerResponse } from 'node:http'
import { isBrokenConnection } from './broken-connection.ts'
import { openRequest, type OpenRequest } from './open-request.ts'
import { resolveServerOptions, type ServerOptions } from './options.ts'

/** A listener of `node:http`'s `request` event; it may return a promise. */
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => unknown

/**
 * Puts every request of a plain `node:http` or `node:http2` server under its deadline.
 *
 *     createServer(withDeadline((request, response) => { ... }, { default: '3s' }))
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function withDeadline(listener: RequestListener, options?: ServerOptions): RequestListener {
  const resolved = resolveServerOptions(options)
  return function listenUnderDeadline(request, response) {
    const open = openRequest(request, response, resolved)
    if (open === undefined) return listener(request, response)
    if (open.answered) return undefined
    try {
      const pending = open.run(() => listener(request, response))
      return isThenable(pending) ? watchFailure(open, pending) : undefined
    } catch (error) {
      return watchFailure(open, Promise.reject(error))
    }
  }
}

async function watchFailure(open: OpenRequest, pending: PromiseLike<unknown>): Promise<void> {
  try {
    await pending
  } catch (error) {
    if (open.fail(error)) return
    // a listener that blocked past the deadline fails before the timer has run
    if (!open.answered && !open.isTooLate()) throw error
    // whoever reads or writes when the connection breaks off hears of it, and a user who left is no failure
    if (isBrokenConnection(error)) return
    process.emitWarning(
      `a listener failed after its request had been answered: ${String(error)}`,
      'TimeBudgetWarning',
    )
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
