export { Latency } from './latency.ts'
export type { LatencyOptions } from './latency-options.ts'
export type { LatencySnapshot } from './latency-snapshot.ts'
export { LatencyBook, type LatencyBookOptions } from './latency-book.ts'
