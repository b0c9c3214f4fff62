import type { Unknowns } from './retry-causes.ts'

/** Whether a call that failed so is known not to have been sent, or may have been carried out. */
export type Sending = 'unsent' | 'sent'

/** Codes of Node, undici and clients for what fails while a connection is made. */
const whileConnecting: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ERR_SOCKET_CONNECTION_TIMEOUT',
  'ERR_TLS_HANDSHAKE_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'CONNECT_TIMEOUT',
])

/** Codes for what fails on a connection that there was, or in a phase that they do not tell. */
const whileConnected: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_GOAWAY_SESSION',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** What got calls the phases before a request is sent. */
const phasesBefore: ReadonlySet<unknown> = new Set(['lookup', 'connect', 'secureConnect'])

/** What Node says of a connection that broke in the TLS handshake, and of a stream that a server never looked at. */
const neverProcessed = /before secure TLS connection|REFUSED_STREAM/

/** How one link in a chain of causes says that the network failed; `undefined` if it says nothing of the kind. */
export function networkFailureOf(link: Unknowns): Sending | undefined {
  const code = link['code']
  if (whileConnecting.has(code)) return 'unsent'
  if (whileConnected.has(code)) return cameBeforeSending(link) ? 'unsent' : 'sent'
  // DOMException of AbortSignal.timeout, got, ky
  return link['name'] === 'TimeoutError' || isTimeoutOfSdk(link) ? 'sent' : undefined
}

function cameBeforeSending(link: Unknowns): boolean {
  if (link['syscall'] === 'connect' || phasesBefore.has(link['event'])) return true
  // an AggregateError of Node's: all addresses of a host failed
  if (Array.isArray(link['errors'])) return true
  return typeof link['message'] === 'string' && neverProcessed.test(link['message'])
}

/** The SDKs of OpenAI and Anthropic set neither a name nor a code. */
function isTimeoutOfSdk(link: Unknowns): boolean {
  return link.constructor?.name === 'APIConnectionTimeoutError'
}
