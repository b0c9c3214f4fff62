import { context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api'
import { warnOnce } from './guarded.ts'

interface Registered {
  readonly version?: unknown
  readonly context?: unknown
}
/** Where all copies of @opentelemetry/api look for what was registered. */
const registryKey: unique symbol = Symbol.for('opentelemetry.js.api.1')
const registry = globalThis as { readonly [registryKey]?: Registered }

const probe = createContextKey('timebudget: is a context kept')
let seen: unknown

/**
 * What is wrong with the copies of @opentelemetry/api in this process: one that is newer than the copy by which an SDK was
 * registered sees nothing of it, and says nothing. `undefined` if ours sees what is registered.
 */
export function mismatchOfApiCopies(): string | undefined {
  const registered = registry[registryKey]
  if (registered?.context === seen || keepsContext()) {
    seen = registered?.context
    return undefined
  }
  return (
    `this process has two copies of @opentelemetry/api: an SDK was registered with version ${String(registered?.version)}, ` +
    'which the copy that @timebudget/otel imports does not see; `npm ls @opentelemetry/api` shows who brings which'
  )
}

function keepsContext(): boolean {
  return context.with(ROOT_CONTEXT.setValue(probe, true), () => context.active().getValue(probe) === true)
}

/** Whether ours sees what is registered; warns once if not. */
export function isApiShared(): boolean {
  const mismatch = mismatchOfApiCopies()
  if (mismatch !== undefined) warnOnce('@opentelemetry/api', mismatch)
  return mismatch === undefined
}
