import type { EventEmitter } from 'node:events'
import type { Metadata, sendUnaryData, ServerInterceptor } from '@grpc/grpc-js'
import { findTimeBudgetError } from '@timebudget/core'
import {
  type CallServerOptions,
  type OpenCall,
  resolveCallOptions,
  type ResolvedCallOptions,
} from '@timebudget/core/server'
import { governedCall, GovernedServerCall } from './grpc-server.ts'

/** What is needed of the call that a handler gets, whichever of the four kinds it is. */
export interface HandledCall extends EventEmitter {
  readonly metadata: Metadata
  getPath(): string
}

type Inner = Parameters<ServerInterceptor>[1]
type Respond = sendUnaryData<unknown>

const unknown = 2

/**
 * Puts one handler, of any of the four kinds, under the deadline of each of its calls; under `deadlineServerInterceptor`
 * it only tightens that. A handler may be async: what it throws or rejects with is answered, errors of ours with their
 * own status.
 *
 *     server.addService(definition, { search: withDeadline(async (call, callback) => { ... }, { default: '800ms' }) })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function withDeadline<Call extends HandledCall, Rest extends unknown[]>(
  handler: (call: Call, ...rest: Rest) => unknown,
  options?: CallServerOptions,
): (call: Call, ...rest: Rest) => void {
  const resolved = resolveCallOptions(options)
  return function handleUnderDeadline(call, ...rest) {
    const known = governedCall(call)
    const governed = known ?? governHere(call, resolved)
    const open = governed.open ?? governed.begin(call.metadata)
    if (known !== undefined && options !== undefined) open.tighten(resolved)
    if (open.isOver()) return
    open.keepContext(call)
    // before grpc-js's own listener, which knows no status for our errors
    call.prependListener('error', (error) => open.fail(error))
    const respond = responder(rest[0], { governed, open, isOutermost: known === undefined })
    const failed = (error: unknown): void => {
      if (open.isOver()) warnOfLateFailure(error, open)
      else if (respond !== undefined) respond(toError(error))
      else call.emit('error', toError(error))
    }
    const governedRest = (respond === undefined ? rest : [respond, ...rest.slice(1)]) as Rest
    try {
      const pending = open.run(() => handler(call, ...governedRest))
      if (pending instanceof Promise) pending.catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}

/** Puts a call that no interceptor has governed under its deadline, from here on. */
function governHere(call: HandledCall & { call?: Inner }, options: ResolvedCallOptions): GovernedServerCall {
  // grpc-js's own, which all that a handler does to its call goes through; its types call it private
  const inner = call.call
  if (inner === undefined) throw new TypeError('withDeadline: expected a handler of a grpc-js server')
  const governed = new GovernedServerCall(inner, { path: call.getPath(), options })
  call.call = governed
  call.once('cancelled', () => governed.closed())
  return governed
}

/** The callback that a handler gets in place of grpc-js's. */
function responder(
  callback: unknown,
  {
    governed,
    open,
    isOutermost,
  }: {
    readonly governed: GovernedServerCall
    readonly open: OpenCall
    /** Whether grpc-js's own callback goes past us. */
    readonly isOutermost: boolean
  },
): Respond | undefined {
  if (typeof callback !== 'function') return undefined
  const respond = callback as Respond
  return function respondUnlessOver(error, value, trailers, flags) {
    if (open.fail(error)) return
    if (!isOutermost) return respond(error, value, trailers, flags)
    const code = error === null ? 0 : (error.code ?? unknown)
    const metadata = governed.finish(typeof code === 'number' ? code : unknown, trailers ?? error?.metadata)
    if (metadata !== undefined) respond(error, value, metadata, flags)
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : Object.assign(new Error(String(error)), error)
}

/** What heeds the signal fails with the reason: that is an end in time. */
function warnOfLateFailure(error: unknown, { reason }: OpenCall): void {
  if (reason !== undefined && findTimeBudgetError(error) === reason) return
  const text = `a handler failed after its call had been answered: ${String(error)}`
  process.emitWarning(text, 'TimeBudgetWarning')
}
