import type { IncomingMessage } from 'node:http'
import { refuseUnknownOptions } from '@timebudget/core'

/** Whether whoever asks may see the inspector. Only `true` is a yes: anything else, a throw or a rejection is a no. */
export type Guard = (request: IncomingMessage) => boolean | Promise<boolean>

/** What `inspector()` takes; every option may be left out. */
export interface InspectorOptions {
  /** Who may see it. Without one everybody may, but in production (`NODE_ENV`), where it is off then. */
  readonly guard?: Guard | undefined
  /** Where it is, on hosts that do not mount it by a path themselves; `'/__budget'`. */
  readonly path?: string | undefined
  /** How many finished requests it remembers, and how many running ones it lists; 500, at most 5,000. */
  readonly requests?: number | undefined
}

/** `InspectorOptions` with every default filled in. */
export interface ResolvedInspectorOptions {
  readonly guard: Guard | undefined
  readonly path: string
  readonly requests: number
  /** Whether it listens and answers at all. */
  readonly enabled: boolean
}

const names: Readonly<Record<keyof InspectorOptions, true>> = { guard: true, path: true, requests: true }
const mostRequests = 5_000

/** @throws TypeError that names the option which is unknown or cannot be read. */
export function resolveInspectorOptions(options: InspectorOptions = {}): ResolvedInspectorOptions {
  refuseUnknownOptions(options, Object.keys(names))
  const { guard, path = '/__budget', requests = 500 } = options
  if (guard !== undefined && typeof guard !== 'function') throw new TypeError('guard: expected a function')
  if (typeof path !== 'string' || !/^(\/[^/?#\s]+)+$/.test(path))
    throw new TypeError(`path: expected a path such as '/__budget', got ${JSON.stringify(path)}`)
  if (!Number.isInteger(requests) || requests < 1 || requests > mostRequests)
    throw new TypeError(
      `requests: expected a whole number from 1 to ${mostRequests}, got ${String(requests)}`,
    )
  const enabled = guard !== undefined || process.env['NODE_ENV'] !== 'production'
  return Object.freeze({ guard, path, requests, enabled })
}
