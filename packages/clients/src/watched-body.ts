import type { Outcome, RunningOperation } from '@timebudget/core'
import { failureOf } from './failure.ts'

/**
 * The same response with a body that the operation lasts as long as: it ends with the last chunk, with `cancel`, or by
 * the deadline, which cuts the body off even where the implementation of fetch forgets its signal after the headers.
 */
export function watchBody(
  response: Response,
  running: RunningOperation,
  { outcome, redirected }: { readonly outcome: Outcome; readonly redirected: boolean },
): Response {
  if (response.body === null) {
    running.end(outcome)
    return redirected ? disguise(response, response, { redirected }) : response
  }
  const body = watchedStream(response.body, running, outcome)
  const { status, statusText, headers } = response
  const OfSameKind = response.constructor as typeof Response // undici's own, where its fetch was wrapped
  return disguise(new OfSameKind(body, { status, statusText, headers }), response, { redirected })
}

/** The same stream, which the operation lasts as long as; `toFailure` says what a reader gets for the source's error. */
export function watchedStream(
  source: ReadableStream<Uint8Array>,
  running: RunningOperation,
  outcome: Outcome,
  toFailure: (running: RunningOperation, error: unknown) => Promise<unknown> = failureOf,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream({
    type: 'bytes',
    start(controller) {
      running.onCutOff((reason) => {
        controller.error(reason)
        reader.cancel(reason).catch(ignore)
      })
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value as Uint8Array<ArrayBuffer>)
        running.end(outcome)
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (error) {
        throw await toFailure(running, error)
      }
    },
    async cancel(reason) {
      running.end('cancelled')
      await reader.cancel(reason)
    },
  })
}

/** Gives a response what its constructor cannot: where it came from. */
function disguise(
  response: Response,
  original: Response,
  { redirected }: { readonly redirected: boolean },
): Response {
  const { clone } = response
  return Object.defineProperties(response, {
    url: { value: original.url },
    type: { value: original.type },
    redirected: { value: redirected || original.redirected },
    clone: { value: () => disguise(clone.call(response), original, { redirected }) },
  })
}

function ignore(): void {}
