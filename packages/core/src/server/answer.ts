import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { TimeBudgetError } from '../errors.ts'
import type { ExceededAnswer, ServerOptions } from './options.ts'

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
export function problemOf(
  error: TimeBudgetError,
  extra: Readonly<Record<string, string | number>> = {},
): Problem {
  const problem: Record<string, string | number> = { code: error.code, outcome: error.outcome }
  if (error.operation !== undefined) problem['operation'] = error.operation
  for (const member of ['budget', 'elapsed', 'remaining'] as const) {
    const milliseconds = error[member]
    if (milliseconds !== undefined && Number.isFinite(milliseconds))
      problem[member] = Math.round(milliseconds)
  }
  const status = error.status
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Client Closed Request',
    status,
    detail: detailOf(error),
    ...problem,
    ...extra,
  }
}

/** What was called says where it stands and how it broke: that is for the log, where the error is whole. */
function detailOf({ code, operation, message }: TimeBudgetError): string {
  return code === 'UPSTREAM_ERROR' ? `${operation ?? 'what this depends on'} failed` : message
}

/** The answer to a request that ended with our error: the user's own where it is given and can be sent, else a problem. */
export function answerFor(
  error: TimeBudgetError,
  options: {
    readonly request: IncomingMessage
    readonly onExceeded: ServerOptions['onExceeded']
    readonly extra?: Readonly<Record<string, string | number>> | undefined
  },
): Answer {
  const problem: Answer = {
    status: error.status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...error.headers },
    body: JSON.stringify(problemOf(error, options.extra)),
  }
  if (options.onExceeded === undefined) return problem
  try {
    return merge(problem, options.onExceeded(error, options.request))
  } catch (failure) {
    process.emitWarning(`onExceeded failed: ${String(failure)}`, 'TimeBudgetWarning')
    return problem
  }
}

/** 400 for a header that cannot be read, where the options ask for it. */
export function malformedAnswer(header: string): Answer {
  const body = {
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    detail: `${header} cannot be read`,
    header,
  }
  return { status: 400, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify(body) }
}

/**
 * The problem with what the user has put in its place.
 * @throws TypeError for what cannot be sent.
 */
function merge(problem: Answer, own: ExceededAnswer): Answer {
  if (own instanceof Promise) {
    own.catch(() => {}) // it is too late for whatever it comes to
    throw new TypeError('it must return its answer at once, not a promise')
  }
  const status = own.status ?? problem.status
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new TypeError(`${status} is no status`)
  const headers: Record<string, string> = { ...problem.headers }
  const body = bodyOf(own) ?? problem.body
  if (own.body !== undefined) {
    delete headers['content-type']
    if (typeof own.body === 'object' && body !== own.body) headers['content-type'] = 'application/json'
  }
  for (const [name, value] of Object.entries(own.headers ?? {})) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    if (!connectionHeaders.has(name.toLowerCase())) headers[name.toLowerCase()] = value
  }
  return { status, headers, body }
}

/** Where a body ends, and what becomes of the connection, is for the connection to say. */
export const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function bodyOf({ body }: ExceededAnswer): string | Uint8Array | undefined {
  if (typeof body !== 'object' || body instanceof Uint8Array) return body
  return JSON.stringify(body)
}
