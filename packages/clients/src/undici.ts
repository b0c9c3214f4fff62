import { currentDeadline, type RunningOperation } from '@timebudget/core'
import type { Dispatcher } from 'undici'
import { isGoverned, noteInstrumentation } from './governed.ts'
import {
  type ClientOptions,
  isBounded,
  type ResolvedClientOptions,
  resolveClientOptions,
  startCall,
  tellOfSending,
} from './outgoing.ts'
import { UndiciAttempt } from './undici-attempt.ts'
import type { GuardedCall } from './undici-call.ts'
import { guardForDispatcher, guardForInterceptors } from './undici-handlers.ts'
import { StampedHeaders, stampedHeaders } from './undici-headers.ts'

export type { ClientOptions }

/** A request as undici dispatches it. */
export type UndiciCall = Pick<Dispatcher.DispatchOptions, 'origin' | 'path' | 'method'>

/** What `deadlineInterceptor` takes. */
export interface InterceptorOptions extends ClientOptions<UndiciCall> {
  /**
   * Interceptors that repeat a call, such as undici's retry and redirect: the deadline bounds them as a whole, and each
   * attempt goes out with what is left by then.
   */
  readonly inside?: readonly Interceptor[] | undefined
  /** Where calls go that name no origin, as those made by a Pool's or a Client's own `request` do. */
  readonly origin?: string | URL | undefined
}

/** undici's way to change what a dispatcher does. */
export type Interceptor = (dispatch: Dispatcher.Dispatch) => Dispatcher.Dispatch

/** Travels with the options of a dispatch through the interceptors inside ours, whatever async context they run in. */
const callKey: unique symbol = Symbol('timebudget.call')
type FoundOptions = Dispatcher.DispatchOptions & { readonly [callKey]?: GuardedCall }

/**
 * Puts every call of an undici dispatcher under the ambient deadline of whoever makes it.
 *
 *     const agent = new Agent().compose(deadlineInterceptor({ inside: [interceptors.retry()] }))
 *
 * A dispatch throws BudgetTooSmallError before any I/O if less than the floor is left.
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineInterceptor({
  inside = [],
  origin,
  ...options
}: InterceptorOptions = {}): Interceptor {
  const resolved = resolveClientOptions(options, 'undici')
  noteInstrumentation()
  return function interceptWithDeadline(dispatch) {
    const stamp = stamping(dispatch, resolved)
    const attempt = inside.reduce(
      (inner, interceptor) => interceptor(inner),
      findingCall(dispatch, stamp, origin),
    )
    const guardHandler = inside.length === 0 ? guardForDispatcher : guardForInterceptors
    function dispatchGuarded(
      call: Dispatcher.DispatchOptions,
      handler: Dispatcher.DispatchHandler,
      running: RunningOperation,
    ): boolean {
      const guard = guardHandler(handler, { running, attempt: new UndiciAttempt(call, origin), resolved })
      if (inside.length === 0) return running.within(() => stamp(call, guard, guard))
      const found: FoundOptions = { ...call, [callKey]: guard }
      return running.within(() => attempt(found, guard))
    }
    return function dispatchUnderDeadline(call, handler) {
      const deadline = currentDeadline()
      if (!isBounded({ deadline }, resolved) || isGoverned(deadline)) return attempt(call, handler)
      const running = startCall(resolved, call, { deadline })
      try {
        return dispatchGuarded(call, handler, running)
      } catch (error) {
        throw running.fail(error)
      }
    }
  }
}

type Stamp = (
  call: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  guarded: GuardedCall,
) => boolean

/** Innermost: writes what is left at this attempt, in place of what the attempt before it wrote. */
function stamping(dispatch: Dispatcher.Dispatch, resolved: ResolvedClientOptions<UndiciCall>): Stamp {
  return function dispatchStamped(call, handler, guarded) {
    tellOfSending(guarded.attempt, guarded.running.deadline, resolved)
    const headers = stampedHeaders(call.headers, guarded)
    if (headers === undefined) return dispatch(call, handler) // undici says what is wrong with them
    try {
      return dispatch({ ...call, headers }, handler)
    } finally {
      StampedHeaders.grownOld(headers)
    }
  }
}

/** Behind the interceptors that repeat calls: which call an attempt is of. */
function findingCall(
  dispatch: Dispatcher.Dispatch,
  stamp: Stamp,
  origin: string | URL | undefined,
): Dispatcher.Dispatch {
  return function dispatchFound(call: FoundOptions, handler) {
    const guarded = call[callKey]
    if (guarded === undefined) return dispatch(call, handler)
    // an interceptor that repeats calls may not have noticed the end
    if (guarded.closedBy !== undefined) throw guarded.closedBy.reason
    // only an interceptor may have sent it elsewhere
    if (call.path !== guarded.attempt.path || call.origin !== guarded.attempt.origin)
      guarded.attempt = new UndiciAttempt(call, origin)
    return stamp(call, handler, guarded)
  }
}

/** Where undici, and Node's global fetch with it, keeps the dispatcher of calls that name none. */
const globalDispatcherKeys = [
  Symbol.for('undici.globalDispatcher.1'),
  Symbol.for('undici.globalDispatcher.2'),
]
type DispatcherRegistry = typeof globalThis & Record<symbol, Dispatcher | undefined>

/**
 * Puts every global fetch of the process, and every undici call that names no dispatcher, under the ambient deadline,
 * without wrapping any. Call it once at the start, after any `setGlobalDispatcher`, which on Node 22 the import of an
 * undici 8 is too; the returned function undoes it.
 *
 * The fetch then fails as Node's does, with `TypeError: fetch failed` and our error as its `cause`.
 * @throws TypeError that names the option which cannot be read.
 */
export function instrumentUndici(options: InterceptorOptions = {}): () => void {
  const intercept = deadlineInterceptor({ operation: 'fetch', ...options })
  void Response // Node loads its undici, and sets the dispatcher, when the first of its classes is touched
  const registry = globalThis as DispatcherRegistry
  const replaced = globalDispatcherKeys.flatMap((key) => {
    const original = registry[key]
    return original === undefined ? [] : [{ key, original }]
  })
  const wrapped = new Map<Dispatcher, Dispatcher>()
  for (const { key, original } of replaced) {
    const wrapper = wrapped.get(original) ?? wrapDispatcher(original, intercept)
    wrapped.set(original, wrapper)
    registry[key] = wrapper
  }
  return function uninstrument() {
    for (const { key, original } of replaced)
      if (registry[key] === wrapped.get(original)) registry[key] = original
  }
}

/** What dispatchers do by their own `dispatch`, which must be ours. */
const byDispatch: ReadonlySet<string | symbol> = new Set([
  'request',
  'stream',
  'pipeline',
  'upgrade',
  'connect',
  'compose',
])

/** A proxy, since a dispatcher's own methods reach for private fields. */
function wrapDispatcher(original: Dispatcher, intercept: Interceptor): Dispatcher {
  const dispatch = intercept((call, handler) => original.dispatch(call, handler))
  return new Proxy(original, {
    get(target, name) {
      if (name === 'dispatch') return dispatch
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' && !byDispatch.has(name) ? member.bind(target) : member
    },
  })
}
