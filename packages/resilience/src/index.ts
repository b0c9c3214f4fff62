export { type LearnedFloor, learnedFloor } from './learned-floor.ts'
export type { FloorCap, LearnedFloorOptions } from './floor-options.ts'
export type { Pressure } from './floor-pressure.ts'
export { type LearnedFloors, learnedFloors, type LearnedFloorsOptions } from './floor-keys.ts'
export {
  type FloorStore,
  type IoredisClient,
  memoryStore,
  type NodeRedisClient,
  redisStore,
} from './floor-store.ts'
export { Latency } from './latency.ts'
export type { LatencyOptions } from './latency-options.ts'
export type { LatencySnapshot } from './latency-snapshot.ts'
export { LatencyBook, type LatencyBookOptions } from './latency-book.ts'
export { type Breaker, breaker, type BreakerCallOptions } from './breaker.ts'
export { type Breakers, breakers, type BreakersOptions } from './breakers.ts'
export type { BreakerOptions, CallEnd } from './breaker-options.ts'
export type { BreakerState } from './breaker-circuit.ts'
export { retry } from './retry.ts'
export type { RetryScope, RetryWork } from './retry-attempt.ts'
export { type RetryEnd, retryEndOf } from './retry-end.ts'
export type { AttemptResult, BackoffOptions, HedgeOptions, RetryOptions } from './retry-options.ts'
export { RetryBudget, type RetryBudgetOptions } from './retry-budget.ts'
export { offload, type OffloadOptions, type OffloadTask } from './offload.ts'
export type { WorkerPool, WorkerRun } from './offload-pool.ts'
export { DeadlineQueue } from './deadline-queue.ts'
export { type DeadlineQueueOptions, type QueueEstimate, type QueueRequest } from './queue-options.ts'
export { type Slot } from './queue-slot.ts'
export { type LoopLagOptions, type LoopLagWatch, watchLoopLag } from './loop-lag.ts'
