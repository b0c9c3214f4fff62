import { refuseUnknownOptions, type Clock } from '@timebudget/core'
import { LatencyCurve } from './latency-curve.ts'
import { type LatencyOptions, resolveLatencyOptions } from './latency-options.ts'
import { type Bins, LatencySketch, sumBins } from './latency-sketch.ts'
import { type LatencySnapshot, readSnapshot, writeSnapshot } from './latency-snapshot.ts'

// The window moves on by a sixth of itself; what is in it is between five sixths of it and all of it old.
const slicesOfWindow = 6

// The curve is drawn anew after a thirty-second more calls: nobody sees the difference, and it costs a call 0.2 us.
const staleAfter = 1 / 32

// More replicas than share one operation; a bound for what others say.
const mostSources = 64

interface Slice {
  readonly number: number
  done: LatencySketch | undefined
  cut: LatencySketch | undefined
}

interface Told {
  readonly done: Bins
  readonly cut: Bins
  readonly samples: number
  readonly until: number
}

/**
 * How long something takes, learned from the calls of a sliding window. A call that was cut off counts as one that takes
 * longer than that. It holds no timer.
 *
 *     latency.record(212)
 *     latency.quantile(0.95) // 640, or undefined with too few calls
 */
export class Latency {
  readonly #clock: Clock
  readonly #window: number
  readonly #minSamples: number
  #slices: Slice[] = []
  /** What other processes said of the same, by process. */
  readonly #told = new Map<string, Told>()
  #curve: LatencyCurve | undefined
  #curveOf = -1
  #recordedSince = 0

  /** @throws TypeError that names an option which is unknown or cannot be read. */
  constructor(options: LatencyOptions = {}) {
    refuseUnknownOptions(options, ['window', 'minSamples', 'clock'])
    const { window, minSamples, clock } = resolveLatencyOptions(options)
    this.#window = window
    this.#minSamples = minSamples
    this.#clock = clock
  }

  /** Notes a call of that many milliseconds; `cut`: it was cut off then, and would have taken longer. Other numbers are ignored. */
  record(spent: number, { cut = false }: { readonly cut?: boolean } = {}): void {
    if (!(spent >= 0 && spent < Infinity)) return
    const slice = this.#sliceNow()
    if (cut) (slice.cut ??= new LatencySketch()).add(spent)
    else (slice.done ??= new LatencySketch()).add(spent)
    this.#recordedSince += 1
  }

  /** Calls in the window, those included that were cut off or that others told of. */
  get samples(): number {
    this.#forget(this.#sliceNumber())
    let samples = 0
    for (const { done, cut } of this.#slices) samples += (done?.count ?? 0) + (cut?.count ?? 0)
    for (const told of this.#told.values()) samples += told.samples
    return samples
  }

  /**
   * Milliseconds within which that share of the calls finishes, `undefined` below `minSamples`. Where too many were cut
   * off to know, it is the longest time of which anything is known: it takes at least that.
   */
  quantile(share: number): number | undefined {
    return this.#current()?.quantile(share)
  }

  /**
   * The chance, 0 to 1, of finishing within that many milliseconds. `undefined` where that is not known: below
   * `minSamples`, and beyond what calls were given before they were cut off.
   */
  chance(within: number): number | undefined {
    return Number.isNaN(within) ? undefined : this.#current()?.chance(within)
  }

  /** What this process saw in the window, for JSON. */
  snapshot(): LatencySnapshot {
    this.#forget(this.#sliceNumber())
    return writeSnapshot({ done: sumBins(this.#own('done')), cut: sumBins(this.#own('cut')) })
  }

  /** Adds what a snapshot tells, as if it had happened just now; what is no snapshot is ignored. */
  merge(snapshot: LatencySnapshot): void {
    const seen = readSnapshot(snapshot)
    if (seen === undefined) return
    const slice = this.#sliceNow()
    if (seen.done.bins.length > 0) (slice.done ??= new LatencySketch()).addBins(seen.done)
    if (seen.cut.bins.length > 0) (slice.cut ??= new LatencySketch()).addBins(seen.cut)
    this.#curve = undefined
  }

  /** Takes what another process says in place of what it said before, for a window at most; what is no snapshot is ignored. */
  hear(source: string, snapshot: unknown): void {
    const seen = readSnapshot(snapshot)
    if (seen === undefined) return
    if (!this.#told.has(source) && this.#told.size >= mostSources) return
    this.#told.set(source, { ...seen, until: this.#clock.now() + this.#window })
    this.#curve = undefined
  }

  #current(): LatencyCurve | undefined {
    const now = this.#sliceNumber()
    const curve = this.#curve
    const fresh = curve !== undefined && this.#curveOf === now
    if (fresh && this.#recordedSince < Math.max(1, curve.samples * staleAfter)) return curve
    return this.#draw(now)
  }

  #draw(now: number): LatencyCurve | undefined {
    const samples = this.samples
    if (samples < this.#minSamples) return undefined
    const told = [...this.#told.values()]
    const done = [...this.#own('done'), ...told.map((seen) => seen.done)]
    const cut = [...this.#own('cut'), ...told.map((seen) => seen.cut)]
    this.#curve = LatencyCurve.of({ done, cut, samples }, { minSamples: this.#minSamples })
    this.#curveOf = now
    this.#recordedSince = 0
    return this.#curve
  }

  #own(kind: 'done' | 'cut'): Bins[] {
    const bins: Bins[] = []
    for (const slice of this.#slices) {
      const sketch = slice[kind]
      if (sketch !== undefined) bins.push(sketch.bins)
    }
    return bins
  }

  #sliceNumber(): number {
    return Math.floor((this.#clock.now() / this.#window) * slicesOfWindow)
  }

  #sliceNow(): Slice {
    const number = this.#sliceNumber()
    const newest = this.#slices.at(-1)
    if (newest?.number === number) return newest
    this.#forget(number)
    const slice: Slice = { number, done: undefined, cut: undefined }
    this.#slices.push(slice)
    return slice
  }

  #forget(now: number): void {
    const oldest = this.#slices[0]
    if (oldest !== undefined && oldest.number <= now - slicesOfWindow)
      this.#slices = this.#slices.filter((slice) => slice.number > now - slicesOfWindow)
    if (this.#told.size === 0) return
    const moment = this.#clock.now()
    for (const [source, { until }] of this.#told) if (until <= moment) this.#told.delete(source)
  }
}
