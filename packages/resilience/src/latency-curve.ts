import { type Bins, binOf, valueOf } from './latency-sketch.ts'

/** What is known of how long calls take: of those that finished, and of those that were cut off before. */
export interface SeenCalls {
  readonly done: readonly Bins[]
  readonly cut: readonly Bins[]
  readonly samples: number
}

/**
 * The chance of having finished by a moment (Kaplan and Meier, 1958): a call that was cut off counts among those that
 * might have finished up to its cut, and not after it. So short deadlines do not make the work look short.
 */
export class LatencyCurve {
  /** Of calls that this is made of. */
  readonly samples: number
  readonly #firstBin: number
  /** The chance at the end of each bin. */
  readonly #chances: Float64Array
  /** Whether it goes on to 1. */
  readonly #complete: boolean

  private constructor(shape: {
    samples: number
    firstBin: number
    chances: Float64Array
    complete: boolean
  }) {
    this.samples = shape.samples
    this.#firstBin = shape.firstBin
    this.#chances = shape.chances
    this.#complete = shape.complete
  }

  /** The curve as far as at least `minSamples` calls, or what is worth as many, tell of it. */
  static of(
    { done, cut, samples }: SeenCalls,
    { minSamples }: { readonly minSamples: number },
  ): LatencyCurve {
    const [firstBin, lastBin] = rangeOf([...done, ...cut])
    const length = Math.max(0, lastBin - firstBin + 1)
    const dones = spread(done, { firstBin, length })
    const cuts = spread(cut, { firstBin, length })
    let atRisk = samples
    let surviving = 1
    let known = 0
    for (let index = 0; index < length; index += 1) {
      const finished = dones[index] ?? 0
      const left = cuts[index] ?? 0
      if (finished + left > 0) {
        // atRisk / surviving calls without a cut would tell as much (Peto's variance); the rest is for rounding
        if (atRisk < minSamples * surviving * 0.999_999) break
        surviving *= (atRisk - finished) / atRisk
        atRisk -= finished + left
        known = index + 1
      }
      dones[index] = 1 - surviving
    }
    return new LatencyCurve({
      samples,
      firstBin,
      chances: dones.subarray(0, known),
      complete: known > 0 && surviving === 0,
    })
  }

  /** Milliseconds within which that share finishes; the longest known if fewer do. */
  quantile(share: number): number {
    const chance = Math.max(share, Number.MIN_VALUE) // the bins before the first call are of no interest
    let low = 0
    let high = this.#chances.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chances[middle] ?? 1) >= chance) high = middle
      else low = middle + 1
    }
    return valueOf(this.#firstBin + low)
  }

  /** The chance, 0 to 1, of finishing within that many milliseconds, unless nothing is known of so long a time. */
  chance(within: number): number | undefined {
    const index = binOf(within) - this.#firstBin
    if (index < 0) return 0
    return this.#chances[index] ?? (this.#complete ? 1 : undefined)
  }
}

function rangeOf(parts: readonly Bins[]): [first: number, last: number] {
  let first = Infinity
  let last = -Infinity
  for (const { offset, bins } of parts) {
    first = Math.min(first, offset)
    last = Math.max(last, offset + bins.length - 1)
  }
  return [first, last]
}

function spread(
  parts: readonly Bins[],
  { firstBin, length }: { readonly firstBin: number; readonly length: number },
): Float64Array {
  const sums = new Float64Array(length)
  for (const { offset, bins } of parts) {
    const shift = offset - firstBin
    for (let index = 0; index < bins.length; index += 1) {
      sums[shift + index] = (sums[shift + index] ?? 0) + (bins[index] ?? 0)
    }
  }
  return sums
}
