import type { RunningOperation } from '@timebudget/core'
import type { ClientRequest } from 'node:http'
import { type Governing, GovernedRequest } from './request-governor.ts'

/**
 * Puts a request that has just been made under its operation: it goes out with what is left, is destroyed by the
 * deadline, and ends the operation with its response.
 */
export function governRequest(request: Governable, running: RunningOperation, governing: Governing): void {
  if (request.destroyed) {
    // the caller's signal had aborted before
    running.end('cancelled')
    return
  }
  const governed = new GovernedRequest(request, running, governing)
  if (request[governedBy] === undefined) takeOver(request, governed)
  else takeOverAgain(request, governed)
  running.onCutOff((reason) => governed.cut(reason))
}

/** Fails a request before it has begun, as Node would: later, so that there may be listeners. */
export function refuseRequest(request: ClientRequest, error: unknown): void {
  request.destroy(error as Error)
  process.nextTick(() => request.emit('error', error))
  setImmediate(() => request.emit('close'))
}

const governedBy: unique symbol = Symbol('timebudget.governed')
type EmitArguments = [event: string | symbol, ...args: unknown[]]
type Governable = ClientRequest & { [governedBy]?: GovernedRequest }

/**
 * Functions that all requests share: with a closure of its own as a method, a request outlives young garbage
 * collections, which costs more than all else that is done for it (bench/outbound).
 */
const sharedMethods = {
  emit(this: Governable, ...args: EmitArguments): boolean {
    const governed = governorOf(this)
    // passed on from here: arguments that are handed to another function first cost an array for every event
    if (governed.passes(args[0], args[1])) return Reflect.apply(governed.own.emit, this, args)
    return governed.emitOtherwise(...args)
  },
  destroy(this: Governable, error?: Error): ClientRequest {
    return governorOf(this).destroy(error)
  },
  // headers leave with the first of these calls, which may come long after the request was made
  write(this: Governable, ...args: unknown[]): boolean {
    return governorOf(this).sending('write', args)
  },
  end(this: Governable, ...args: unknown[]): ClientRequest {
    return governorOf(this).sending('end', args)
  },
  flushHeaders(this: Governable): void {
    governorOf(this).sending('flushHeaders', [])
  },
}

function governorOf(request: Governable): GovernedRequest {
  const governed = request[governedBy]
  if (governed === undefined) throw new TypeError('a method of a governed request was called on another one')
  return governed
}

function takeOver(request: Governable, governed: GovernedRequest): void {
  request[governedBy] = governed
  request.emit = sharedMethods.emit
  request.destroy = sharedMethods.destroy
  if (request.headersSent) return
  request.write = sharedMethods.write
  request.end = sharedMethods.end
  request.flushHeaders = sharedMethods.flushHeaders
}

/** Where one client of ours is made from another. */
function takeOverAgain(request: ClientRequest, governed: GovernedRequest): void {
  request.emit = (...args: EmitArguments) =>
    governed.passes(args[0], args[1])
      ? Reflect.apply(governed.own.emit, request, args)
      : governed.emitOtherwise(...args)
  request.destroy = (error) => governed.destroy(error)
  if (request.headersSent) return
  request.write = (...args: unknown[]) => governed.sending('write', args)
  request.end = (...args: unknown[]) => governed.sending('end', args)
  request.flushHeaders = () => governed.sending('flushHeaders', [])
}
