import { currentDeadline, startOperation } from '@timebudget/core'
import type { Dispatcher } from 'undici'
import { isGoverned, noteInstrumentation } from './governed.ts'
import {
  type ClientOptions,
  headersFor,
  outcomeOfAnswer,
  type ResolvedClientOptions,
  resolveClientOptions,
} from './outgoing.ts'
import { GuardedCall, guardHandler } from './undici-handlers.ts'

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
}

/** undici's way to change what a dispatcher does. */
export type Interceptor = (dispatch: Dispatcher.Dispatch) => Dispatcher.Dispatch

/** Travels with the options of a dispatch through the interceptors inside ours, whatever async context they run in. */
const callKey: unique symbol = Symbol('timebudget.call')
type StampedOptions = Dispatcher.DispatchOptions & { readonly [callKey]?: GuardedCall }

/**
 * Puts every call of an undici dispatcher under the ambient deadline of whoever makes it.
 *
 *     const agent = new Agent().compose(deadlineInterceptor({ inside: [interceptors.retry()] }))
 *
 * A dispatch throws BudgetTooSmallError before any I/O if less than the floor is left.
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineInterceptor({ inside = [], ...options }: InterceptorOptions = {}): Interceptor {
  const resolved = resolveClientOptions(options, 'undici')
  return function interceptWithDeadline(dispatch) {
    const attempt = inside.reduce((inner, interceptor) => interceptor(inner), stamping(dispatch, resolved))
    return function dispatchUnderDeadline(call, handler) {
      const deadline = currentDeadline()
      const isUnbounded = deadline === undefined && resolved.timeout === undefined
      if (isUnbounded || isGoverned()) return attempt(call, handler)
      const { timeout, floor } = resolved
      const running = startOperation(resolved.nameOf(call), { timeout, floor })
      const url = urlOf(call)
      const guarded = new GuardedCall(running, (status, header) => {
        const serverTiming = header('server-timing')
        const deadlineOutcome = header('x-deadline-outcome')
        return outcomeOfAnswer({ url, status, serverTiming, deadlineOutcome }, running, resolved)
      })
      const stamped: StampedOptions = { ...call, [callKey]: guarded }
      try {
        return attempt(stamped, guardHandler(handler, guarded))
      } catch (error) {
        throw running.fail(error)
      }
    }
  }
}

/** Innermost: writes what is left at this attempt, in place of what the attempt before it wrote. */
function stamping(
  dispatch: Dispatcher.Dispatch,
  resolved: ResolvedClientOptions<UndiciCall>,
): Dispatcher.Dispatch {
  return function dispatchStamped(call: StampedOptions, handler) {
    const guarded = call[callKey]
    if (guarded === undefined) return dispatch(call, handler)
    // an interceptor that repeats calls may not have noticed the end
    if (guarded.closedBy !== undefined) throw guarded.closedBy.reason
    const stamps = headersFor(urlOf(call), guarded.running.deadline, resolved)
    return dispatch({ ...call, headers: withStamps(call.headers, stamps, resolved.headerNames) }, handler)
  }
}

/** undici takes headers as a flat list, as pairs or as a record; a name of ours that is there already is replaced. */
function withStamps(
  headers: Dispatcher.DispatchOptions['headers'],
  stamps: Readonly<Record<string, string>>,
  replaced: ReadonlySet<string>,
): Record<string, string | string[]> {
  const merged: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of headerPairs(headers)) {
    if (value === undefined || value === null || replaced.has(name.toLowerCase())) continue
    const present = merged[name]
    merged[name] = present === undefined ? value : [present, value].flat()
  }
  return Object.assign(merged, stamps)
}

function headerPairs(headers: unknown): Iterable<[string, string | string[] | undefined | null]> {
  if (headers === undefined || headers === null) return []
  if (Array.isArray(headers)) {
    if (Array.isArray(headers[0])) return headers
    return headers.flatMap((name, index) => (index % 2 === 0 ? [[String(name), headers[index + 1]]] : []))
  }
  if (typeof headers !== 'object') return []
  if (Symbol.iterator in headers) return headers as Iterable<[string, string]>
  return Object.entries(headers)
}

function urlOf({ origin, path }: UndiciCall): URL {
  return new URL(path, origin ?? 'http://localhost')
}

/** Where undici, and Node's global fetch with it, keeps the dispatcher of calls that name none. */
const globalDispatcherKeys = [
  Symbol.for('undici.globalDispatcher.1'),
  Symbol.for('undici.globalDispatcher.2'),
]
type DispatcherRegistry = typeof globalThis & Record<symbol, Dispatcher | undefined>

/**
 * Puts every global fetch of the process, and every undici call that names no dispatcher, under the ambient deadline,
 * without wrapping any. Call it once at the start, after any `setGlobalDispatcher`; the returned function undoes it.
 *
 * The fetch then fails as Node's does, with `TypeError: fetch failed` and our error as its `cause`.
 * @throws TypeError that names the option which cannot be read.
 */
export function instrumentUndici(options: InterceptorOptions = {}): () => void {
  const intercept = deadlineInterceptor({ operation: 'fetch', ...options })
  noteInstrumentation()
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

/** A proxy, since a dispatcher's own methods reach for private fields. */
function wrapDispatcher(original: Dispatcher, intercept: Interceptor): Dispatcher {
  const dispatch = intercept((call, handler) => original.dispatch(call, handler))
  return new Proxy(original, {
    get(target, name) {
      if (name === 'dispatch') return dispatch
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
