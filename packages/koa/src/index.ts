import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Deadline, findTimeBudgetError } from '@timebudget/core'
import {
  deadlineOf,
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
    readonly deadline: Deadline
  }
}

/** What of Koa's context is needed here. */
export interface DeadlineContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  onerror: (this: DeadlineContext, error: unknown) => void
  readonly app: { emit(event: 'error', error: unknown, context: unknown): boolean }
  readonly deadline: Deadline
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
    prepare(context)
    const open = openRequest(context.req, context.res, resolved)
    if (open === undefined) return next().then(ignore)
    if (open.answered) return Promise.resolve()
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

type OnError = DeadlineContext['onerror']

const ours = new WeakSet<OnError>()

/**
 * Gives all contexts of an application, by their prototype, a `deadline`, and an `onerror` that takes a response which was
 * cut off for no failure of the application's. Once and not for each request: every property of its own is dear to a context.
 */
function prepare(context: DeadlineContext): void {
  const { onerror } = context
  if (ours.has(onerror)) return
  const koas = Object.getPrototypeOf(context) as DeadlineContext
  const holder = Object.hasOwn(context, 'onerror') ? context : koas
  holder.onerror = function onErrorUnlessCutOff(this: DeadlineContext, error) {
    if (!isCutOff(this, error)) onerror.call(this, error)
  }
  ours.add(holder.onerror)
  Object.defineProperty(koas, 'deadline', { get: deadlineOfContext, configurable: true })
}

function deadlineOfContext(this: DeadlineContext): Deadline | undefined {
  return deadlineOf(this.req)
}

function isCutOff({ req }: DeadlineContext, error: unknown): boolean {
  if (!isBrokenConnection(error)) return false
  // a reset is told here before anybody hears that the connection has closed
  return error === req.socket.errored || openRequestOf(req)?.answered === true
}
