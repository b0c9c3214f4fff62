export { Deadline } from './deadline.ts'
export type { ChildOptions, DeadlineOptions } from './deadline-options.ts'
export { deadlineBehind, remainingOf } from './signal-deadline.ts'
export { bind, currentDeadline, detach, runWithDeadline } from './current.ts'
export { isAtTheEdge, waitOutTheEdge } from './edge.ts'
export { operation } from './operation.ts'
export {
  type OperationOptions,
  type OperationScope,
  type RunningOperation,
  startOperation,
} from './running-operation.ts'
export { Ledger, type LedgerEntry, type LedgerOpening } from './ledger.ts'
export { isOutcome, type Outcome, outcomes } from './outcome.ts'
export {
  BudgetTooSmallError,
  CancelledError,
  CircuitOpenError,
  ClientClosedError,
  ConnectTimeoutError,
  DeadlineExceededError,
  type ErrorDetails,
  findTimeBudgetError,
  FirstTokenTimeoutError,
  isTimeBudgetError,
  OperationTimeoutError,
  outcomeOf,
  OverloadedError,
  ShutdownError,
  StreamStalledError,
  TimeBudgetError,
  type TimeBudgetErrorCode,
  TotalTimeoutError,
  UpstreamError,
} from './errors.ts'
export { defineEvent, type EventChannel } from './event-channel.ts'
export {
  type DeadlineSent,
  deadlineSent,
  type DeadlineSource,
  type HeaderMalformed,
  headerMalformed,
  type OperationFinished,
  operationFinished,
  type OperationStarted,
  operationStarted,
  type RequestFinished,
  requestFinished,
  type RequestStarted,
  requestStarted,
  type SkewMeasured,
  skewMeasured,
  type WorkLate,
  workLate,
} from './events.ts'
export {
  type BreakerMoved,
  breakerMoved,
  type FloorJudged,
  floorJudged,
  type FloorQuestionable,
  floorQuestionable,
  type HedgeStarted,
  hedgeStarted,
  type LoopLagged,
  loopLagged,
  type QueueJudged,
  queueJudged,
  type RetryDecided,
  retryDecided,
  type RetryStop,
} from './resilience-events.ts'
export type { WorkWrapper } from './work-wrapper.ts'
export { refuseUnknownOptions } from './known-options.ts'
export { type Clock, type ClockTimer, systemClock } from './clock.ts'
export { type Duration, type FinishedWork, type Floor, type FloorSource, parseDuration } from './duration.ts'
