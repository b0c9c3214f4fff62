import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Deadline } from '@timebudget/core'
import {
  isBrokenConnection,
  openRequest,
  openRequestOf,
  resolveServerOptions,
  type ServerOptions,
} from '@timebudget/core/server'
import { keepAsTables } from './property-table.ts'

export type { ServerOptions }

declare global {
  namespace Express {
    interface Request {
      /** The moment at which this request must be answered. */
      deadline: Deadline
    }
  }
}

/** An Express middleware, in the shape that 4 and 5 share. */
export type DeadlineMiddleware = (
  request: IncomingMessage & { deadline?: Deadline },
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/** An Express error handler, in the shape that 4 and 5 share. */
export type DeadlineErrorHandler = (
  error: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * Gives every request one deadline; again on a router or a route, it tightens that.
 *
 *     app.use(deadline({ default: '3s' }))
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function deadline(options?: ServerOptions): DeadlineMiddleware {
  const resolved = resolveServerOptions(options)
  return function deadlineMiddleware(request, response, next) {
    if (openRequestOf(request) === undefined) keepAsTables(request, response)
    const open = openRequest(request, response, resolved)
    if (open === undefined) return next()
    request.deadline = open.deadline
    if (!open.answered) open.run(next)
  }
}

/**
 * Answers the errors of ours that handlers let through as problem+json, after all routes: `app.use(deadlineErrors())`.
 * Without it Express answers them with the right status and `X-Deadline-Outcome`, and a page of its own.
 */
export function deadlineErrors(): DeadlineErrorHandler {
  return function deadlineErrorHandler(error, request, _response, next) {
    const open = openRequestOf(request)
    if (open?.fail(error) === true) return
    // a user who left is no failure, though a body parser may report one
    if (open?.answered === true && isBrokenConnection(error)) return
    next(error)
  }
}
