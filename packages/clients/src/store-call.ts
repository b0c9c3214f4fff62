import { currentDeadline, isTimeBudgetError, type RunningOperation } from '@timebudget/core'
import { type ClientOptions, isBounded, type ResolvedClientOptions, startCall } from './outgoing.ts'

/** What the client of a store or queue takes: there are no headers to write and no peer's answer to read. */
export type StoreOptions<Call> = Pick<
  ClientOptions<Call>,
  'timeout' | 'floor' | 'operation' | 'requireDeadline'
>

/** Node's way to be told of an end. */
export type Callback = (error: unknown, ...results: unknown[]) => void

/** Whether a call made now has anything to keep to, or must have. */
export function isBoundedNow(
  resolved: Pick<ResolvedClientOptions<never>, 'timeout' | 'requireDeadline'>,
): boolean {
  return isBounded({ deadline: currentDeadline() }, resolved)
}

/** Begins the operation of a call that is made now; throws as `startCall` does. */
export function startCallNow<Call>(resolved: ResolvedClientOptions<Call>, call: Call): RunningOperation {
  return startCall(resolved, call, { deadline: currentDeadline() })
}

/**
 * Makes a call under the ambient deadline; what it comes to afterwards is swallowed. The library's own errors stay as
 * they are, since its users tell them apart by `code`; the ledger says `upstream_error`.
 */
export async function runStoreCall<Call, T>(
  resolved: ResolvedClientOptions<Call>,
  call: Call,
  work: (running: RunningOperation) => PromiseLike<T> | T,
): Promise<T> {
  const running = startCallNow(resolved, call)
  return runNotingFailure(running, () => work(running))
}

/** Runs the work in the operation, and calls its failure the other side's. */
export async function runNotingFailure<T>(
  running: RunningOperation,
  work: () => PromiseLike<T> | T,
): Promise<T> {
  return running.run(async () => {
    try {
      return await work()
    } catch (error) {
      running.end(isTimeBudgetError(error) ? error.outcome : 'upstream_error', error)
      throw error
    }
  })
}

/** A promise for those who gave no callback; the callback is called in its caller's context. */
export function answer<T>(
  promise: Promise<T>,
  callback: Callback | undefined,
  spread: (value: T) => readonly unknown[] = (value) => [value],
): Promise<T> | undefined {
  if (callback === undefined) return promise
  promise.then(
    // in a tick of their own: what they throw is an uncaught exception, as it is without us
    (value) => process.nextTick(callback, null, ...spread(value)),
    (error: unknown) => process.nextTick(callback, error),
  )
  return undefined
}

/** Splits a trailing callback off. */
export function splitCallback(args: readonly unknown[]): {
  readonly args: unknown[]
  readonly callback: Callback | undefined
} {
  const last = args.at(-1)
  if (typeof last !== 'function') return { args: [...args], callback: undefined }
  return { args: args.slice(0, -1), callback: (...results) => Reflect.apply(last, undefined, results) }
}

/** The same object, but for these methods; only those that it has. */
export function overriding<T extends object>(target: T, methods: Readonly<Record<string, unknown>>): T {
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Reflect.get(target, name, target)
      return typeof name === 'string' && member !== undefined ? (methods[name] ?? member) : member
    },
  })
}
