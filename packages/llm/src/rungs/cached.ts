import {
  type Clock,
  detach,
  type Duration,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
} from '@timebudget/core'
import { expectFunction, expectMethod } from '../expected.ts'
import { expectName, type Rung, wholeText } from './rung.ts'

/** What of a cache is needed; bentocache's caches are such. */
export interface AnswerCache {
  get(options: { readonly key: string }): Promise<unknown>
  set(options: { readonly key: string; readonly value: StoredAnswer; readonly ttl: number }): Promise<unknown>
}

/** An answer as it lies in the cache. */
export interface StoredAnswer {
  readonly text: string
  /** Unix epoch ms. */
  readonly storedAt: number
}

/** An answer to a similar question. */
export interface SimilarAnswer {
  readonly text: string
  /** 0 to 1. */
  readonly similarity: number
  /** Unix epoch ms; of any age if absent. */
  readonly storedAt?: number | undefined
}

/** How answers are kept and found. */
export interface CachedOptions<Input> {
  /** What an answer is kept under; the tenant belongs into it where answers are not for everybody. */
  readonly key: (input: Input) => string
  /** Older answers are not given; `'1h'`. */
  readonly maxAge?: Duration | undefined
  /** Looks for an answer to a similar question where there is none to this one. */
  readonly similar?:
    | ((input: Input, scope: { readonly signal: AbortSignal }) => Promise<SimilarAnswer | undefined>)
    | undefined
  /** Less similar answers are not given, 0 to 1; 0.9. */
  readonly threshold?: number | undefined
  /** Its name in answers; `'cache'`. */
  readonly name?: string | undefined
  /** Kept for it by the rungs before it, and the most it takes; `'100ms'`. */
  readonly reserve?: Duration | undefined
  readonly clock?: Clock | undefined
}

const optionNames = [
  'key',
  'maxAge',
  'similar',
  'threshold',
  'name',
  'reserve',
  'clock',
] as const satisfies (keyof CachedOptions<unknown>)[]

/**
 * A rung that gives an earlier answer, if it is young and similar enough. Complete answers of models are kept for it.
 *
 *     cached(bento, { key: ({ question }) => question, maxAge: '1h' })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function cached<Input>(cache: AnswerCache, options: CachedOptions<Input>): Rung<Input> {
  expectMethod(cache, 'cache', 'get')
  expectMethod(cache, 'cache', 'set')
  refuseUnknownOptions(options, optionNames)
  const { key, similar, threshold = 0.9, name = 'cache', clock = systemClock } = options
  expectFunction(key, 'key', '({ question }) => question')
  expectName(name)
  if (similar !== undefined)
    expectFunction(similar, 'similar', '(input, { signal }) => nearest(input, signal)')
  const maxAge = parseDuration(options.maxAge ?? '1h', 'maxAge')
  const reserve = parseDuration(options.reserve ?? '100ms', 'reserve')
  if (!(threshold >= 0 && threshold <= 1)) throw new TypeError(`threshold: expected 0 to 1, got ${threshold}`)
  const isYoung = (storedAt: number): boolean => clock.epoch() - storedAt <= maxAge
  return {
    name,
    floor: undefined,
    reserve,
    timeout: reserve,
    asksModel: false,
    answersAtOnce: false,
    async open(input, { signal }) {
      const stored = await cache.get({ key: key(input) })
      if (isStored(stored) && isYoung(stored.storedAt)) return { attempt: 1, events: wholeText(stored.text) }
      const found = await similar?.(input, { signal })
      if (found === undefined || !(found.similarity >= threshold)) return undefined
      if (found.storedAt !== undefined && !isYoung(found.storedAt)) return undefined
      return { attempt: 1, events: wholeText(found.text) }
    },
    learn(input, text) {
      // nobody waits for it, and it must not end with the request
      detach(() => {
        const value = { text, storedAt: clock.epoch() }
        Promise.resolve()
          .then(() => cache.set({ key: key(input), value, ttl: maxAge }))
          .catch((error: unknown) => {
            process.emitWarning(`an answer could not be cached: ${String(error)}`, 'TimeBudgetWarning')
          })
      })
    },
  }
}

function isStored(value: unknown): value is StoredAnswer {
  return (
    typeof value === 'object' &&
    value !== null &&
    'text' in value &&
    typeof value.text === 'string' &&
    'storedAt' in value &&
    typeof value.storedAt === 'number'
  )
}
