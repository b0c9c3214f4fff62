import type { IncomingMessage, ServerResponse } from 'node:http'
import { ResponseHead } from './response-head.ts'

/** Who decides over a guarded response. */
export interface ResponseKeeper {
  /** Before anything is sent: whether this is too late. Then the keeper has answered, and the call is dropped. */
  isTooLate(): boolean
  /** Just before status and headers leave. */
  beforeHeaders(head: ResponseHead): void
  /** A part of the body is about to be written. */
  bodyWritten(chunk: unknown): void
}

/** The response's methods as they were before anybody guarded them. */
export interface OriginalMethods {
  readonly writeHead: ServerResponse['writeHead']
  readonly write: ServerResponse['write']
  readonly end: ServerResponse['end']
  readonly flushHeaders: ServerResponse['flushHeaders']
}

/**
 * Asks the keeper before a response begins, whichever way it is sent. Middleware that wraps these methods later wraps
 * ours, so that an answer through the originals never waits for a session store or a compressor.
 */
export function guardResponse(response: ServerResponse, keeper: ResponseKeeper): OriginalMethods {
  const { writeHead, write, end, flushHeaders } = response
  let headersPassed = false

  const passHeaders = (writeHeadArguments: unknown[]): void => {
    if (headersPassed) return
    headersPassed = true
    keeper.beforeHeaders(new ResponseHead(response, writeHeadArguments))
  }

  response.writeHead = function guardedWriteHead(this: ServerResponse, ...args: unknown[]): ServerResponse {
    if (keeper.isTooLate()) return this
    passHeaders(args)
    return Reflect.apply(writeHead, this, args)
  }
  response.write = function guardedWrite(this: ServerResponse, ...args: unknown[]): boolean {
    if (keeper.isTooLate()) return dropped(args)
    passHeaders([])
    keeper.bodyWritten(args[0])
    return Reflect.apply(write, this, args)
  }
  response.end = function guardedEnd(this: ServerResponse, ...args: unknown[]): ServerResponse {
    if (keeper.isTooLate()) {
      dropped(args)
      return this
    }
    passHeaders([])
    return Reflect.apply(end, this, args)
  }
  response.flushHeaders = function guardedFlushHeaders(this: ServerResponse): void {
    if (keeper.isTooLate()) return
    passHeaders([])
    flushHeaders.call(this)
  }
  return { writeHead, write, end, flushHeaders }
}

/**
 * Makes a response that has been answered deaf: whatever a late handler or its framework does to it, or to the
 * connection through `request.socket`, neither throws nor reaches the client. `onLate` hears of the first such attempt.
 */
export function sealResponse(request: IncomingMessage, response: ServerResponse, onLate: () => void): void {
  let isNoted = false
  const note = (): void => {
    if (isNoted) return
    isNoted = true
    onLate()
  }
  const ignore = function ignoredLateCall(this: ServerResponse): ServerResponse {
    note()
    return this
  }
  const swallow = (...args: unknown[]): boolean => {
    note()
    return dropped(args)
  }
  response.write = swallow
  response.end = function ignoredLateEnd(this: ServerResponse, ...args: unknown[]): ServerResponse {
    swallow(...args)
    return this
  }
  response.writeHead = ignore
  response.setHeader = ignore
  response.setHeaders = ignore
  response.appendHeader = ignore
  for (const name of headerCalls) {
    Object.defineProperty(response, name, { value: note, configurable: true, writable: true })
  }
  // a pipeline that hears of the abort would take the answer along
  response.destroy = function ignoredDestroy(this: ServerResponse): ServerResponse {
    return this
  }
  shieldSocket(request)
}

const headerCalls = [
  'removeHeader',
  'flushHeaders',
  'addTrailers',
  'writeContinue',
  'writeProcessing',
  'writeEarlyHints',
] as const

/** Express's last handler destroys the socket of a request that failed after its answer, and the next one on it too. */
function shieldSocket(request: IncomingMessage): void {
  const socket = request.socket
  if (socket === undefined || socket === null) return
  const shield: object = new Proxy(socket, {
    get: (target, name) => (socketEnds.has(name) ? () => shield : Reflect.get(target, name, target)),
  })
  Object.defineProperty(request, 'socket', { value: shield, configurable: true, writable: true })
}

const socketEnds: ReadonlySet<string | symbol> = new Set(['destroy', 'destroySoon', 'end'])

/** Calls the callback of a dropped write, as Node would, so that nobody waits for it. */
function dropped(args: readonly unknown[]): true {
  const callback = args.findLast((argument) => typeof argument === 'function')
  if (callback !== undefined) process.nextTick(callback)
  return true
}
