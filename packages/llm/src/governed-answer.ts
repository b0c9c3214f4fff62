import type { Clock } from '@timebudget/core'
import { type AnswerReader, EventStreamReader, OpaqueReader, WholeReader } from './answer-reader.ts'
import { GovernedBody } from './governed-body.ts'
import type { ModelCall } from './model-call.ts'

/** The same response with a body that keeps to the call's limits; a redirect as it is, since it is no answer. */
export function governAnswer(
  response: Response,
  { call, clock }: { readonly call: ModelCall; readonly clock: Clock },
): Response {
  const { status } = response
  if (status >= 300 && status < 400 && status !== 304) return response
  call.answered(response)
  const headers = new Headers(response.headers)
  // SDKs that know this header do not retry by themselves then
  if (status >= 400) headers.set('x-should-retry', 'false')
  if (response.body === null) {
    call.completed()
    return sameResponse(response, null, headers)
  }
  const body = new GovernedBody(response.body, { call, answer: readerFor(response, call), clock })
  return sameResponse(response, body.stream(), headers)
}

function readerFor({ status, headers }: Response, call: ModelCall): AnswerReader {
  const type = headers.get('content-type') ?? ''
  const isJson = /\bjson\b/i.test(type)
  const { tally, asked } = call
  const { protocol, streams } = asked
  if (/^text\/event-stream/i.test(type)) return new EventStreamReader(tally, protocol)
  if (status >= 400) return new WholeReader(tally, { protocol: undefined, mustBeJson: false })
  if (streams && !isJson) return new OpaqueReader(tally)
  call.governor.comesWhole()
  return new WholeReader(tally, { protocol, mustBeJson: isJson })
}

/** A constructor cannot say where a response came from, and refuses statuses that some send. */
function sameResponse(
  original: Response,
  body: ReadableStream<Uint8Array> | null,
  headers: Headers,
): Response {
  const { url, type, status, statusText, ok, redirected } = original
  const OfSameKind = original.constructor as typeof Response
  return Object.defineProperties(new OfSameKind(body, { headers }), {
    url: { value: url },
    type: { value: type },
    status: { value: status },
    statusText: { value: statusText },
    ok: { value: ok },
    redirected: { value: redirected },
  })
}
