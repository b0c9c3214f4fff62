import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TimeBudgetError } from '../errors.ts'
import { isHttp2 } from './client-gone.ts'
import type { ExceededAnswer } from './options.ts'

/** A whole response, ready to be written. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** Says why there is no better answer; RFC 9457. Milliseconds, rounded. */
export interface Problem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly [member: string]: string | number
}

/** Our error as an RFC 9457 problem; `extra` members are added as they are. */
export function problemOf(error: TimeBudgetError, extra: Readonly<Record<string, string | number>> = {}): Problem {
  const problem: Record<string, string | number> = { code: error.code, outcome: error.outcome }
  if (error.operation !== undefined) problem['operation'] = error.operation
  for (const member of ['budget', 'elapsed', 'remaining'] as const) {
    const milliseconds = error[member]
    if (milliseconds !== undefined && Number.isFinite(milliseconds)) problem[member] = Math.round(milliseconds)
  }
  const status = error.status
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Client Closed Request',
    status,
    detail: error.message,
    ...problem,
    ...extra,
  }
}

/** The answer to a request that ended with our error: the user's own where it is given, else a problem. */
export function answerFor(
  error: TimeBudgetError,
  options: {
    readonly request: IncomingMessage
    readonly onExceeded: ((error: TimeBudgetError, request: IncomingMessage) => ExceededAnswer) | undefined
    readonly extra?: Readonly<Record<string, string | number>> | undefined
  },
): Answer {
  const own = askUser(error, options)
  const body = own.body ?? problemOf(error, options.extra)
  const isText = typeof body === 'string' || body instanceof Uint8Array
  const contentType = own.body === undefined ? 'application/problem+json' : isText ? undefined : 'application/json'
  return {
    status: own.status ?? error.status,
    headers: {
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
      'cache-control': 'no-store',
      ...error.headers,
      ...own.headers,
    },
    body: isText ? body : JSON.stringify(body),
  }
}

/** 400 for a header that cannot be read, where the options ask for it. */
export function malformedAnswer(header: string): Answer {
  const body = { type: 'about:blank', title: 'Bad Request', status: 400, detail: `${header} cannot be read`, header }
  return { status: 400, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify(body) }
}

function askUser(error: TimeBudgetError, { request, onExceeded }: Parameters<typeof answerFor>[1]): ExceededAnswer {
  try {
    return onExceeded?.(error, request) ?? {}
  } catch (failure) {
    process.emitWarning(`onExceeded failed: ${String(failure)}`, 'TimeBudgetWarning')
    return {}
  }
}

/** What a handler that was cut off may have said of a body that is not sent now. */
const headersOfABody = [
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'location',
  'server-timing',
  'set-cookie',
  'trailer',
  'transfer-encoding',
]

/** How a response is written past everything that later middleware wrapped around it. */
export interface RawWriter {
  readonly writeHead: ServerResponse['writeHead']
  readonly end: ServerResponse['end']
}

/** Writes the answer on a response that has not begun; headers that do not describe a body (CORS, ...) stay. */
export function writeAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  { writeHead, end }: RawWriter,
): void {
  for (const name of headersOfABody) response.removeHeader(name)
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  response.setHeader('content-length', Buffer.byteLength(answer.body))
  // the rest of the upload would be taken for the next request
  if (!isHttp2(request) && !request.complete) response.setHeader('connection', 'close')
  writeHead.call(response, answer.status)
  Reflect.apply(end, response, [answer.body])
}
