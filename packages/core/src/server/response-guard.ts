import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Deadline } from '../deadline.ts'
import { emitUnder } from './keep-context.ts'

/** Who decides over a guarded exchange. */
export interface ExchangeKeeper {
  /** The methods as they were before anybody guarded them. */
  readonly original: OriginalMethods
  /** Before anything is sent: whether this is too late. Then the keeper has answered, and the call is dropped. */
  isTooLate(): boolean
  /** Before status and headers leave; called more than once. The arguments of `writeHead` may be changed in place. */
  beforeHeaders(writeHeadArguments: unknown[] | undefined): void
  /** A part of the body is about to be written. */
  bodyWritten(chunk: unknown): void
  /** The response is about to be ended; its status and headers may not have left. */
  beforeEnd(): void
  /** Hears of an event before its listeners; returns the deadline to call them under, unless they need none. */
  heard(emitter: EventEmitter, event: string | symbol): Deadline | undefined
}

type Emit = EventEmitter['emit']

/** An exchange's methods as they were before anybody guarded them. */
export interface OriginalMethods {
  readonly writeHead: ServerResponse['writeHead']
  readonly write: ServerResponse['write']
  readonly end: ServerResponse['end']
  readonly emit: Emit
  readonly emitOfRequest: Emit
}

/** Under which a request and its response hold their keeper; the same for all copies of this package. */
export const keeperKey: unique symbol = Symbol.for('timebudget.request.v1')

type Kept<T> = T & { [keeperKey]?: ExchangeKeeper }

/** Reads the methods; the same object for the same methods, which are those of Node's classes for nearly all requests. */
export function originalMethods(request: IncomingMessage, response: ServerResponse): OriginalMethods {
  const { writeHead, write, end, emit } = response
  const emitOfRequest = request.emit
  if (
    lastSeen?.writeHead === writeHead &&
    lastSeen.write === write &&
    lastSeen.end === end &&
    lastSeen.emit === emit &&
    lastSeen.emitOfRequest === emitOfRequest
  ) {
    return lastSeen
  }
  lastSeen = { writeHead, write, end, emit, emitOfRequest }
  return lastSeen
}

let lastSeen: OriginalMethods | undefined

/**
 * Asks the keeper before a response begins, whichever way it is sent, and before what either of the two emits reaches
 * its listeners. Middleware that wraps these methods later wraps ours, so that an answer through the originals never waits
 * for a session store or a compressor. The same functions for all: closures for each request cost more than the rest. And
 * no more of them than it takes, which is why flushHeaders, which calls writeHead, is not among them: each costs 5 us where
 * a framework has set the prototype, as Express does, on Node 20.
 */
export function guardExchange(
  request: Kept<IncomingMessage>,
  response: Kept<ServerResponse>,
  keeper: ExchangeKeeper,
  { hearsRequest }: { readonly hearsRequest: boolean },
): void {
  request[keeperKey] = keeper
  if (hearsRequest) request.emit = emitOfKeptRequest
  response[keeperKey] = keeper
  response.emit = emitOfKeptResponse
  response.writeHead = guardedWriteHead
  response.write = guardedWrite
  response.end = guardedEnd
}

function keeperOf(kept: Kept<object>): ExchangeKeeper {
  return kept[keeperKey] as ExchangeKeeper // set together with the methods that ask for it
}

function emitOfKeptRequest(this: EventEmitter, ...args: Parameters<Emit>): boolean {
  const keeper = keeperOf(this)
  const around = keeper.heard(this, args[0])
  const { emitOfRequest } = keeper.original
  if (around !== undefined) return emitUnder(around, this, emitOfRequest, args)
  return Reflect.apply(emitOfRequest, this, args)
}

function emitOfKeptResponse(this: EventEmitter, ...args: Parameters<Emit>): boolean {
  const keeper = keeperOf(this)
  const around = keeper.heard(this, args[0])
  if (around !== undefined) return emitUnder(around, this, keeper.original.emit, args)
  return Reflect.apply(keeper.original.emit, this, args)
}

function guardedWriteHead(this: ServerResponse, ...args: unknown[]): ServerResponse {
  const keeper = keeperOf(this)
  if (keeper.isTooLate()) return this
  keeper.beforeHeaders(args)
  return Reflect.apply(keeper.original.writeHead, this, args)
}

function guardedWrite(this: ServerResponse, ...args: unknown[]): boolean {
  const keeper = keeperOf(this)
  if (keeper.isTooLate()) return dropped(args)
  keeper.beforeHeaders(undefined)
  keeper.bodyWritten(args[0])
  return Reflect.apply(keeper.original.write, this, args)
}

function guardedEnd(this: ServerResponse, ...args: unknown[]): ServerResponse {
  const keeper = keeperOf(this)
  if (keeper.isTooLate()) {
    dropped(args)
    return this
  }
  keeper.beforeEnd()
  return Reflect.apply(keeper.original.end, this, args)
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
