import { refuseUnknownOptions } from '@timebudget/core'
import { LRUCache } from 'lru-cache'
import { Latency } from './latency.ts'
import { boundedKey } from './bounded-key.ts'
import type { LatencyOptions } from './latency-options.ts'
import { positiveInteger } from './option-values.ts'

/** How the latencies of many keys are learned; every option may be left out. */
export interface LatencyBookOptions extends LatencyOptions {
  /** With more the one longest unused is forgotten; 1,000: 6 MiB of them if little used, 30 to 60 if much. */
  readonly maxKeys?: number | undefined
}

/** One latency for each key, so many keys at most. */
export class LatencyBook {
  readonly #options: LatencyOptions
  readonly #latencies: LRUCache<string, Latency>

  /** @throws TypeError that names an option which is unknown or cannot be read. */
  constructor({ maxKeys = 1000, ...options }: LatencyBookOptions = {}) {
    refuseUnknownOptions(options, ['window', 'minSamples', 'clock', 'maxKeys'])
    this.#latencies = new LRUCache({ max: positiveInteger(maxKeys, 'maxKeys') })
    this.#options = options
    new Latency(options) // a bad option throws here, not in the first request
  }

  /** How many keys have a distribution at present. */
  get size(): number {
    return this.#latencies.size
  }

  /** The key's latency, made on first use; of a key only the first 256 characters count. */
  of(key: string): Latency {
    const short = boundedKey(key)
    const known = this.#latencies.get(short)
    if (known !== undefined) return known
    const latency = new Latency(this.#options)
    this.#latencies.set(short, latency)
    return latency
  }
}
