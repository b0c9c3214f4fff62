import { DDSketch } from '@datadog/sketches-js'

/** How many values lie in each bin, from the bin `offset` on; bins grow by 2 % a step. */
export interface Bins {
  readonly offset: number
  readonly bins: readonly number[]
}

/** The relative error of every value that is read back: the sketch's own default, finer than latency is ever known. */
export const accuracy = 0.01

// A microsecond to eleven days in milliseconds: what lies outside counts as the nearest, so that no sketch has more bins.
const shortest = 0.001
const longest = 1e9

const { mapping } = new DDSketch({ relativeAccuracy: accuracy })
const firstBin = mapping.key(shortest)
const lastBin = mapping.key(longest)

// More than any window sees of one bin; a foreign snapshot that says more is garbage.
const mostInBin = 1e9

/** Counts values, in milliseconds, by bins of equal relative width: about 1 KiB while they lie close together. */
export class LatencySketch {
  // the library's own summary of a sketch (sum, least, greatest) is of no use here
  readonly #store = new DDSketch({ relativeAccuracy: accuracy }).store

  get count(): number {
    return this.#store.count
  }

  /** The counts as they stand; they go on changing. */
  get bins(): Bins {
    return this.#store
  }

  add(value: number): void {
    this.#store.add(binOf(value))
  }

  addBins({ offset, bins }: Bins): void {
    for (const [index, count] of bins.entries()) if (count > 0) this.#store.add(offset + index, count)
  }
}

/** The bin in which a value lies. */
export function binOf(value: number): number {
  return mapping.key(Math.min(Math.max(value, shortest), longest))
}

/** The middle of a bin, in milliseconds. */
export function valueOf(bin: number): number {
  return mapping.value(bin)
}

/** All of them in one, without empty bins at its ends. */
export function sumBins(parts: readonly Bins[]): Bins {
  let first = Infinity
  let last = -Infinity
  for (const { offset, bins } of parts) {
    for (const [index, count] of bins.entries()) {
      if (count === 0) continue
      first = Math.min(first, offset + index)
      last = Math.max(last, offset + index)
    }
  }
  if (first > last) return { offset: 0, bins: [] }
  const sums = Array.from({ length: last - first + 1 }, () => 0)
  for (const { offset, bins } of parts) {
    for (const [index, count] of bins.entries()) {
      if (count > 0) sums[offset + index - first] = (sums[offset + index - first] ?? 0) + count
    }
  }
  return { offset: first, bins: sums }
}

/** Counts that came from elsewhere, if that is what they are. */
export function readBins(value: unknown): Bins | undefined {
  if (typeof value !== 'object' || value === null || !('offset' in value) || !('bins' in value))
    return undefined
  const { offset, bins } = value
  if (!Array.isArray(bins) || typeof offset !== 'number' || !Number.isInteger(offset)) return undefined
  if (bins.length === 0) return { offset: 0, bins: [] }
  if (offset < firstBin || offset + bins.length - 1 > lastBin) return undefined
  const counts: number[] = []
  for (const count of bins as readonly unknown[]) {
    if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > mostInBin)
      return undefined
    counts.push(count)
  }
  return { offset, bins: counts }
}
