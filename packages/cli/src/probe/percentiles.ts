/** How values are spread: each percentile is a value that was seen (nearest rank). */
export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly most: number
}

/** `undefined` without values. */
export function percentilesOf(values: readonly number[]): Percentiles | undefined {
  const sorted = values.toSorted((one, other) => one - other)
  const most = sorted.at(-1)
  if (most === undefined) return undefined
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? most
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most }
}
