import { exitCodes } from '../exit-codes.ts'
import { shownUrl } from '../request/target.ts'
import { exitCodeOf, type ProbeOutcome } from '../request/verdict.ts'
import { printable } from '../terminal/printable.ts'
import type { ProbeFlags } from './flags.ts'
import { type Percentiles, percentilesOf } from './percentiles.ts'
import type { Probe } from './probe.ts'
import { tenths } from './probe-json.ts'

/** What many requests come to; milliseconds. */
export interface Summary {
  readonly asked: number
  readonly done: number
  readonly took: number
  /** The commonest first. */
  readonly outcomes: readonly OutcomeCount[]
  readonly firstByte: Percentiles | undefined
  readonly total: Percentiles | undefined
  readonly operations: readonly OperationSummary[]
}

/** How often an outcome was seen, and with which statuses. */
export interface OutcomeCount {
  readonly outcome: ProbeOutcome
  readonly count: number
  /** Why, of the first of them. */
  readonly because: string | undefined
}

/** An operation over all requests that told of it. */
export interface OperationSummary extends Percentiles {
  readonly path: string
  /** How many did not end `ok`. */
  readonly notOk: number
}

const mostOperations = 40

/** Sums up what many requests came to, `took` milliseconds in all. */
export function summarize(probes: readonly Probe[], { count }: ProbeFlags, took: number): Summary {
  return {
    asked: count,
    done: probes.length,
    took,
    outcomes: countOutcomes(probes),
    firstByte: percentilesOf(probes.flatMap(({ exchange }) => exchange.firstByteAt ?? [])),
    total: percentilesOf(
      probes.flatMap(({ exchange }) => (exchange.status === undefined ? [] : exchange.total)),
    ),
    operations: summarizeOperations(probes),
  }
}

function countOutcomes(probes: readonly Probe[]): readonly OutcomeCount[] {
  const counts = new Map<ProbeOutcome, OutcomeCount>()
  for (const { outcome, because } of probes) {
    const before = counts.get(outcome)
    counts.set(outcome, {
      outcome,
      count: (before?.count ?? 0) + 1,
      because: before === undefined ? because : before.because,
    })
  }
  return [...counts.values()].toSorted((one, other) => other.count - one.count)
}

function summarizeOperations(probes: readonly Probe[]): readonly OperationSummary[] {
  const found = new Map<string, { readonly spent: number[]; notOk: number }>()
  for (const { operations } of probes) {
    for (const { path, spent, outcome } of operations) {
      const entry = found.get(path) ?? { spent: [], notOk: 0 }
      if (found.size < mostOperations) found.set(path, entry)
      if (spent !== undefined) entry.spent.push(spent)
      if (outcome !== undefined && outcome !== 'ok') entry.notOk += 1
    }
  }
  return [...found].flatMap(([path, { spent, notOk }]) => {
    const percentiles = percentilesOf(spent)
    return percentiles === undefined ? [] : [{ path: printable(path, 128), notOk, ...percentiles }]
  })
}

/** 0 if all were answered in time, else what the commonest fault exits with; 130 if it was stopped. */
export function summaryExitCode({ outcomes, done, asked }: Summary): number {
  if (done < asked) return exitCodes.stopped
  const fault = outcomes.find(({ outcome }) => exitCodeOf(outcome) !== exitCodes.ok)
  return fault === undefined ? exitCodes.ok : exitCodeOf(fault.outcome)
}

/** What `probe -n --json` prints; milliseconds, to a tenth. */
export function summaryJson(summary: Summary, { target, budget, concurrency }: ProbeFlags): object {
  const { asked, done, took, outcomes, firstByte, total, operations } = summary
  return {
    url: shownUrl(target.url),
    method: target.method,
    budget,
    count: asked,
    concurrency,
    done,
    took: tenths(took),
    exitCode: summaryExitCode(summary),
    outcomes: Object.fromEntries(outcomes.map(({ outcome, count }) => [outcome, count])),
    firstByte: rounded(firstByte),
    total: rounded(total),
    operations: operations.map(({ path, notOk, ...percentiles }) => ({
      path,
      notOk,
      ...rounded(percentiles),
    })),
  }
}

function rounded(percentiles: Percentiles | undefined): object | null {
  if (percentiles === undefined) return null
  const { count, p50, p95, p99, most } = percentiles
  return { count, p50: tenths(p50), p95: tenths(p95), p99: tenths(p99), most: tenths(most) }
}
