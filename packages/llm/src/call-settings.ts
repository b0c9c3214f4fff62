import { AsyncLocalStorage } from 'node:async_hooks'
import { refuseUnknownOptions } from '@timebudget/core'
import type { LlmCall } from './call-record.ts'
import type { ProfileChoice } from './profiles.ts'

/** What the code around a call to a model knows of it and the SDK between the two cannot pass on. */
export interface CallSettings {
  readonly profile?: ProfileChoice | undefined
  readonly task?: string | undefined
  readonly feature?: string | undefined
  readonly tenant?: string | undefined
  /** Sent as `Idempotency-Key`, unless the call has one. */
  readonly idempotencyKey?: string | undefined
  /** Told what became of each call, once. */
  readonly onCall?: ((call: LlmCall) => void) | undefined
}

const storage = new AsyncLocalStorage<CallSettings>()

const settingNames = [
  'profile',
  'task',
  'feature',
  'tenant',
  'idempotencyKey',
  'onCall',
] as const satisfies (keyof CallSettings)[]

/**
 * Runs work whose calls to models get these settings, before those that their `governedFetch` was made with.
 * @throws TypeError that names the setting which does not exist.
 */
export function withCallSettings<T>(settings: CallSettings, work: () => T): T {
  refuseUnknownOptions(settings, settingNames, 'settings')
  return withOwnSettings(settings, work)
}

/** As `withCallSettings`, for settings of our own making: a ladder enters its rung's for every piece of an answer. */
export function withOwnSettings<T>(settings: CallSettings, work: () => T): T {
  const outer = storage.getStore()
  return storage.run(outer === undefined ? settings : within(outer, settings), work)
}

/** What the running code's calls to models get. */
export function currentCallSettings(): CallSettings | undefined {
  return storage.getStore()
}

function within(outer: CallSettings, inner: CallSettings): CallSettings {
  const given = Object.entries(inner).filter(([, value]) => value !== undefined)
  return {
    ...outer,
    ...Object.fromEntries(given),
    onCall(call) {
      try {
        inner.onCall?.(call)
      } finally {
        outer.onCall?.(call)
      }
    },
  }
}
