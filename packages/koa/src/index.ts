import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Deadline, findTimeBudgetError } from '@timebudget/core'
import {
  isBrokenConnection,
  openRequest,
  openRequestOf,
  resolveServerOptions,
  type ServerOptions,
} from '@timebudget/core/server'
import type {} from 'koa' // so that the augmentation below finds its module

export type { ServerOptions }

declare module 'koa' {
  interface ExtendableContext {
    /** The moment at which this request must be answered. */
    deadline: Deadline
  }
}

/** What of Koa's context is needed here. */
export interface DeadlineContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  onerror(error: unknown): void
  readonly app: { emit(event: 'error', error: unknown, context: unknown): boolean }
  deadline: Deadline
}

/** A Koa middleware, in the shape that 2 and 3 share. */
export type DeadlineMiddleware = (context: DeadlineContext, next: () => Promise<unknown>) => Promise<void>

/**
 * Gives every request one deadline; again on a router or a route, it tightens that. Middleware that stands before it
 * goes on at the deadline, even if a handler does not.
 *
 *     app.use(deadline({ default: '3s' }))
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function deadline(options?: ServerOptions): DeadlineMiddleware {
  const resolved = resolveServerOptions(options)
  return function deadlineMiddleware(context, next) {
    const open = openRequest(context.req, context.res, resolved)
    if (open === undefined) return next().then(ignore)
    context.deadline = open.deadline
    if (open.answered) return Promise.resolve()
    hushBrokenConnections(context)
    // whichever comes first
    return new Promise((resolve, reject) => {
      open.onEnded(resolve)
      open.run(next).then(
        () => {
          if (open.answered) context.res.end() // which counts it as late
          resolve()
        },
        (error: unknown) => {
          if (open.fail(error)) return resolve()
          if (!open.answered) return reject(error)
          if (findTimeBudgetError(error) === undefined && !isBrokenConnection(error))
            context.app.emit('error', error, context)
          resolve()
        },
      )
    })
  }
}

function ignore(): void {}

/** Koa reports a response that was cut off as the application's error; a user who left is no failure. */
function hushBrokenConnections(context: DeadlineContext): void {
  const { onerror } = context
  context.onerror = Object.hasOwn(context, 'onerror')
    ? function ownOnErrorUnlessCutOff(error) {
        if (!isCutOff(context, error)) onerror.call(context, error)
      }
    : onErrorUnlessCutOff
}

/** The same for all contexts that have Koa's own `onerror`, from their prototype. */
function onErrorUnlessCutOff(this: DeadlineContext, error: unknown): void {
  const koas = Object.getPrototypeOf(this) as DeadlineContext
  if (!isCutOff(this, error)) koas.onerror.call(this, error)
}

function isCutOff({ req }: DeadlineContext, error: unknown): boolean {
  if (!isBrokenConnection(error)) return false
  // a reset is told here before anybody hears that the connection has closed
  return error === req.socket.errored || openRequestOf(req)?.answered === true
}
