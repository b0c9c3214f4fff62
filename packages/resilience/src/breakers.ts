import { LRUCache } from 'lru-cache'
import { boundedKey } from './bounded-key.ts'
import { Breaker } from './breaker.ts'
import { type BreakerOptions, resolveBreakerOptions } from './breaker-options.ts'
import { positiveInteger } from './option-values.ts'

/** What all the breakers of a set have in common. */
export interface BreakersOptions extends BreakerOptions {
  /** How many are kept; the one that was used least recently goes, and starts closed if it comes back; 1000. */
  readonly maxKeys?: number | undefined
}

/** One breaker for each model, destination or whatever else fails by itself. */
export interface Breakers {
  /** The breaker of that name; made, closed, where there is none yet. */
  for(key: string): Breaker
  /** How many there are. */
  readonly size: number
}

/**
 * A bounded set of breakers with the same options.
 *
 *     const models = breakers({ ratio: 0.5 })
 *     await models.for('small-model').run(({ signal }) => ask(prompt, { signal }))
 *
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export function breakers(options: BreakersOptions = {}): Breakers {
  const { maxKeys = 1000, ...shared } = options
  const resolved = resolveBreakerOptions(shared)
  const kept = new LRUCache<string, Breaker>({ max: positiveInteger(maxKeys, 'maxKeys') })
  return {
    for(name) {
      const key = boundedKey(name)
      let found = kept.get(key)
      if (found === undefined) {
        found = new Breaker(key, resolved)
        kept.set(key, found)
      }
      return found
    },
    get size() {
      return kept.size
    },
  }
}
