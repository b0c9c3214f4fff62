import type { Outcome } from '@timebudget/core'
import { type CallServerOptions, OpenCall, problemOf, resolveCallOptions } from '@timebudget/core/server'

type Options = Pick<CallServerOptions, 'default' | 'max' | 'floor' | 'reserve' | 'trust'>
type Handler<Rest extends readonly unknown[]> = (request: Request, ...rest: Rest) => Promise<Response>

/** Puts a route handler under a deadline that lasts to the last byte of its answer. */
export function withDeadline<Rest extends readonly unknown[]>(
  handler: Handler<Rest>,
  options?: Options,
): Handler<Rest> {
  const resolved = resolveCallOptions(options)
  return function handleUnderDeadline(request, ...rest) {
    const headers = Object.fromEntries(request.headers)
    const call = new OpenCall({ path: new URL(request.url).pathname, headers }, resolved)
    const leave = (): void => call.clientGone('request_aborted')
    request.signal.addEventListener('abort', leave)
    const finish = (outcome: Outcome): void => {
      request.signal.removeEventListener('abort', leave)
      call.finish(outcome)
    }
    const untilItsEnd = (response: Response): Response => {
      call.endIfLate()
      const flush = (): void => finish(response.status < 500 ? 'ok' : 'error')
      if (response.body === null) flush()
      const { signal } = call.deadline // breaks the body off
      return timed(
        new Response(response.body?.pipeThrough(new TransformStream({ flush }), { signal }), response),
        call,
      )
    }
    return new Promise((resolve, reject) => {
      call.begin((error) => {
        const headers = {
          ...error.headers,
          'content-type': 'application/problem+json',
          'cache-control': 'no-store',
        }
        resolve(timed(Response.json(problemOf(error), { status: error.status, headers }), call))
      })
      if (call.isOver()) return
      const handled = call.run(async () => untilItsEnd(await handler(request, ...rest)))
      handled.then(resolve, (error: unknown) => {
        if (call.fail(error)) return
        finish('error')
        reject(error)
      })
    })
  }
}

function timed(response: Response, { serverTiming }: OpenCall): Response {
  if (serverTiming !== undefined) response.headers.append('server-timing', serverTiming)
  return response
}
