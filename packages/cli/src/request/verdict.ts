import { STATUS_CODES } from 'node:http'
import { isOutcome, type Outcome } from '@timebudget/core'
import { exitCodes } from '../exit-codes.ts'
import { printable } from '../terminal/printable.ts'
import { timeText } from '../terminal/time-text.ts'
import type { Exchange, ExchangeError } from './exchange.ts'

/** How a probed request ended: an outcome of the closed list, or one of those that only a caller sees. */
export type ProbeOutcome = Outcome | 'http_error' | 'connection_failed' | 'cut_off' | 'stopped'

/** What an exchange comes to. */
export interface Verdict {
  readonly outcome: ProbeOutcome
  /** Why, in a clause; `undefined` where all is well. */
  readonly because: string | undefined
}

/** What a caller with that budget (ms) has got from the exchange. */
export function judge(exchange: Exchange, budget: number): Verdict {
  const { ending, error, total, status = 0 } = exchange
  const late = total - budget
  switch (ending) {
    case 'stopped':
      return { outcome: 'stopped', because: 'you stopped it' }
    case 'not_sent':
      return { outcome: 'deadline_exceeded', because: 'connecting took the whole budget: nothing was sent' }
    case 'failed':
      return { outcome: 'connection_failed', because: failureText(error) }
    case 'gave_up':
      return {
        outcome: 'deadline_exceeded',
        because: `${status === 0 ? 'no answer' : 'the body had not ended'} ${timeText(late)} after the deadline`,
      }
    case 'cut_off':
      return brokenOff(exchange, late)
    case 'complete':
      return answered(exchange, late)
  }
}

/** What a service does at the deadline can arrive here a little before it, by our clock. */
const edge = 25

function brokenOff({ headers, error }: Exchange, late: number): Verdict {
  const told = toldOutcome(headers['x-deadline-outcome'])
  if (told !== undefined) return { outcome: told, because: 'the service says so' }
  if (late >= -edge) {
    return { outcome: 'deadline_exceeded', because: 'the answer was broken off at the deadline' }
  }
  return { outcome: 'cut_off', because: `the answer broke off: ${failureText(error)}` }
}

function answered(exchange: Exchange, late: number): Verdict {
  const { headers, events, status = 0 } = exchange
  const told = toldOutcome(headers['x-deadline-outcome'])
  if (told !== undefined) return { outcome: told, because: detailOf(exchange.body) ?? 'the service says so' }
  if (events?.error !== undefined) {
    return {
      outcome: toldOutcome(memberOf(events.error, 'outcome')) ?? 'error',
      because: `the stream ended with an error: ${detailOf(events.error) ?? printable(events.error, 120)}`,
    }
  }
  if (status < 200 || status >= 300) return { outcome: 'http_error', because: httpErrorText(exchange) }
  if (late > 0) {
    return {
      outcome: 'deadline_exceeded',
      because: `the answer was complete ${timeText(late)} after the deadline: a caller would have left`,
    }
  }
  return { outcome: 'ok', because: undefined }
}

/** The word with which a service says that lack of time, or its own protection, ended the work. */
function toldOutcome(word: unknown): Outcome | undefined {
  const text = typeof word === 'string' ? word : undefined
  return isOutcome(text) && text !== 'ok' && text !== 'degraded' ? text : undefined
}

function httpErrorText({ status = 0, headers }: Exchange): string {
  if (status >= 300 && status < 400 && headers.location !== undefined)
    return `it redirects to ${printable(headers.location, 120)}, which is not followed`
  if (status === 504)
    return 'a 504 without X-Deadline-Outcome: from a proxy, or from a service without timebudget'
  return `the service answers ${statusText(status)}`
}

function failureText(error: ExchangeError | undefined): string {
  if (error === undefined) return 'the connection was closed in its midst'
  switch (error.code) {
    case 'ECONNREFUSED':
      return 'nobody listens there (connection refused)'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'there is no such host'
    case 'ECONNRESET':
      return 'the connection was closed without an answer'
    case 'HPE_HEADER_OVERFLOW':
      return 'its headers are longer than 16 KiB'
    default:
      return `${printable(error.message, 120)} (${printable(error.code, 40)})`
  }
}

/** `504 Gateway Timeout`; the standard's words, not those the service may have sent in their place. */
export function statusText(status: number): string {
  const words = STATUS_CODES[status]
  return words === undefined ? String(status) : `${status} ${words}`
}

/** `detail` of an RFC 9457 problem. */
export function detailOf(json: string): string | undefined {
  const detail = memberOf(json, 'detail')
  return typeof detail === 'string' && detail !== '' ? printable(detail, 160) : undefined
}

/** A member of a JSON object in a stranger's text; `undefined` if there is none. */
export function memberOf(json: string, member: string): unknown {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined
    return (value as Readonly<Record<string, unknown>>)[member]
  } catch {
    return undefined
  }
}

/** What the process exits with for an outcome. */
export function exitCodeOf(outcome: ProbeOutcome): number {
  switch (outcome) {
    case 'ok':
    case 'degraded':
      return exitCodes.ok
    case 'deadline_exceeded':
      return exitCodes.deadlineExceeded
    case 'short_circuited':
      return exitCodes.shortCircuited
    case 'http_error':
      return exitCodes.httpError
    case 'connection_failed':
    case 'cut_off':
      return exitCodes.connection
    case 'stopped':
      return exitCodes.stopped
    default:
      return exitCodes.otherOutcome
  }
}
