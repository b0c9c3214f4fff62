import { AsyncLocalStorage } from 'node:async_hooks'
import type { Deadline } from './deadline.ts'

interface Ambient {
  readonly storage: AsyncLocalStorage<Deadline | undefined>
  /** Whether any deadline ever ran in it: until then nobody has to pay for it. */
  used: boolean
}

// On globalThis, so that two copies of this package in one process share one ambient deadline.
const key: unique symbol = Symbol.for('timebudget.deadline.v1')
const registry = globalThis as typeof globalThis & { [key]?: Ambient }

/** The process's one ambient store. */
export const ambient: Ambient = (registry[key] ??= { storage: new AsyncLocalStorage(), used: false })
