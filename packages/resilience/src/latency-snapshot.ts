import { accuracy, type Bins, readBins } from './latency-sketch.ts'

/** What a process saw of a latency, for JSON. */
export interface LatencySnapshot {
  /** Of this format. */
  readonly version: 1
  /** The relative error of its values; it says what the bins are. */
  readonly accuracy: number
  /** Calls that finished. */
  readonly done: Bins
  /** Calls that were cut off. */
  readonly cut: Bins
}

/** What a snapshot tells. */
export interface ReadSnapshot {
  readonly done: Bins
  readonly cut: Bins
  readonly samples: number
}

export function writeSnapshot({ done, cut }: { readonly done: Bins; readonly cut: Bins }): LatencySnapshot {
  return { version: 1, accuracy, done, cut }
}

/** Reads what may come from another process, another version or a stranger; `undefined` if it is no snapshot of ours. */
export function readSnapshot(value: unknown): ReadSnapshot | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (!('version' in value) || value.version !== 1) return undefined
  if (!('accuracy' in value) || value.accuracy !== accuracy) return undefined
  const done = 'done' in value ? readBins(value.done) : undefined
  const cut = 'cut' in value ? readBins(value.cut) : undefined
  if (done === undefined || cut === undefined) return undefined
  return { done, cut, samples: countOf(done) + countOf(cut) }
}

function countOf({ bins }: Bins): number {
  return bins.reduce((sum, count) => sum + count, 0)
}
