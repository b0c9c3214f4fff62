import type { Outcome } from '@timebudget/core'

/** What the page is told at one moment; milliseconds, rounded to tenths. `null` stands for what is not there or not bounded. */
export interface Snapshot {
  /** Another one than before: the server has started anew, and what the page knows is void. */
  readonly session: string
  /** What to ask with next, as `?place=`: only what has changed since is told then. */
  readonly place: string
  /** Whether there is more to fetch at once. */
  readonly more: boolean
  /** On the scale of `RequestView.startedAt`. */
  readonly now: number
  /** Every request that is still kept, by id. */
  readonly kept: readonly number[]
  /** Those that have changed since, the latest first. */
  readonly requests: readonly RequestView[]
  /** The one that was asked for by `?request=`, if it is still kept. */
  readonly request: WholeRequest | null
  readonly counts: Counts
  readonly operations: readonly OperationTotals[]
  readonly models: ModelFigures | null
  readonly service: ServiceView
}

/** Of all requests since the inspector was made. */
export interface Counts {
  readonly running: number
  readonly finished: number
  /** Running ones that are not listed, because too many run. */
  readonly unlisted: number
  readonly outcomes: readonly OutcomeCount[]
}

export interface OutcomeCount {
  readonly outcome: Outcome
  readonly count: number
}

export interface RequestView {
  readonly id: number
  readonly method: string
  /** Without query. */
  readonly path: string
  readonly startedAt: number
  /** Unix epoch ms, for people. */
  readonly startedEpoch: number
  readonly budget: number | null
  /** When its deadline is, from its start: a route may have tightened it. */
  readonly deadlineAt: number | null
  readonly source: string
  readonly clamped: boolean
  readonly attempt: number
  /** `null` while it runs, as are the next four. */
  readonly outcome: Outcome | null
  readonly elapsed: number | null
  readonly overrun: number | null
  readonly status: number | null
  /** How its client left. */
  readonly goneBy: string | null
  readonly bars: readonly BarView[]
}

/** What is drawn of an operation in a list of many requests; a tuple, since there are thousands. */
export type BarView = readonly [start: number, spent: number | null, depth: number, outcome: Outcome | null]

/** A request with all that is known of it. */
export interface WholeRequest extends RequestView {
  /** Higher after each change. */
  readonly changed: number
  readonly entries: readonly EntryView[]
  /** Operations that are not in `entries`, because there are too many. */
  readonly dropped: number
}

/** One operation of a request; in the order of a tree, each after the one it is part of. */
export interface EntryView {
  readonly name: string
  readonly depth: number
  readonly start: number
  readonly remaining: number | null
  /** What it was allowed to take; a peer does not tell. */
  readonly granted: number | null
  readonly floor: number
  readonly reserve: number
  readonly spent: number | null
  readonly outcome: Outcome | null
  /** Whether another service reported it. */
  readonly peer: boolean
  /** The code of what it failed with. */
  readonly code: string | null
}

/** One operation over all requests. */
export interface OperationTotals {
  readonly name: string
  readonly peer: boolean
  readonly count: number
  /** Of the latest 256 that were begun; `null` before the first. */
  readonly p50: number | null
  readonly p95: number | null
  /** The latest floor that was not 0. */
  readonly floor: number | null
  /** What a learned floor last said. */
  readonly learned: LearnedFloor | null
  readonly retries: number
  readonly late: number
  readonly outcomes: readonly OutcomeCount[]
}

export interface LearnedFloor {
  readonly floor: number
  /** 0 to 1, of finishing within what was left. */
  readonly chance: number
  readonly decision: string
}

/** How answers by models are doing; shares are 0 to 1. */
export interface ModelFigures {
  readonly questions: number
  readonly abandoned: number
  readonly mainSuccess: number | null
  readonly degradedSuccess: number | null
  readonly degradedShare: number | null
  readonly partialShare: number | null
  readonly calls: number
  readonly firstTokenTimeoutRate: number | null
  readonly stallRate: number | null
  readonly firstTokenP95: number | null
  readonly costs: readonly CostView[]
  readonly models: readonly ModelView[]
}

export interface CostView {
  readonly currency: string
  readonly spent: number
  readonly perSuccess: number | null
  readonly estimated: boolean
}

/** One model of one provider. */
export interface ModelView {
  readonly provider: string
  readonly model: string
  readonly calls: number
  /** Within which half of the calls got their first token; `null` if fewer did. */
  readonly firstTokenP50: number | null
  readonly firstTokenP95: number | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly outcomes: readonly OutcomeCount[]
}

/** What is not about a single request. */
export interface ServiceView {
  readonly skews: readonly SkewView[]
  readonly breakers: readonly BreakerView[]
  readonly queues: readonly QueueView[]
  readonly lag: LagView | null
  readonly malformed: readonly { readonly header: string; readonly count: number }[]
}

export interface SkewView {
  readonly peer: string
  readonly count: number
  readonly last: number
  readonly least: number
  readonly most: number
}

export interface BreakerView {
  readonly name: string
  readonly state: string
  /** On the scale of `Snapshot.now`. */
  readonly since: number
  readonly opened: number
}

export interface QueueView {
  readonly name: string
  readonly waiting: number
  readonly running: number
  readonly admitted: number
  readonly shed: number
  readonly left: number
  readonly waited: number
  readonly waitedMost: number
}

export interface LagView {
  readonly last: number
  readonly most: number
}
