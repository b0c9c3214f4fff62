import type { EntryView, RequestView, WholeRequest } from '../snapshot.ts'

/** How milliseconds lie on an axis; positions are 0 to 100. */
export interface Scale {
  /** What the right end stands for. */
  readonly end: number
  /** Where the deadline is; `undefined` if there is none, or it lies beyond the right end. */
  readonly deadline: number | undefined
}

/** What is fitted into the axis: the whole budget, or only what has been used of it. */
export type Fit = 'budget' | 'time'

/** The deadline of every row of the list is in one line, here. */
const deadlinePosition = 84

/** For a row of the list, at a moment at which so much has elapsed. */
export function rowScale({ deadlineAt }: RequestView, elapsed: number, fit: Fit): Scale {
  const end = fit === 'budget' && deadlineAt !== null ? (deadlineAt / deadlinePosition) * 100 : elapsed * 1.04
  return scaleTo(Math.max(end, 1), deadlineAt)
}

/** For the waterfall of one request. */
export function waterfallScale(request: WholeRequest, elapsed: number, fit: Fit): Scale {
  const { deadlineAt, entries } = request
  const latest = entries.reduce((end, entry) => Math.max(end, entry.start + (entry.spent ?? 0)), elapsed)
  const end = fit === 'budget' && deadlineAt !== null ? Math.max(deadlineAt, latest) : latest
  return scaleTo(Math.max(end * 1.05, 1), deadlineAt)
}

/** Whether most of the axis would be empty if it showed the whole budget. */
export function isShortOf({ deadlineAt }: RequestView, elapsed: number): boolean {
  return deadlineAt !== null && elapsed < deadlineAt / 5
}

function scaleTo(end: number, deadlineAt: number | null): Scale {
  const isSeen = deadlineAt !== null && deadlineAt <= end
  return { end, deadline: isSeen ? (deadlineAt / end) * 100 : undefined }
}

/** Where on the axis; what lies beyond its ends is at the end. */
export function positionOf(milliseconds: number, { end }: Scale): number {
  return Math.min(100, Math.max(0, (milliseconds / end) * 100))
}

/** A part of the axis. */
export interface Span {
  readonly left: number
  readonly width: number
}

export function spanOf(from: number, to: number, scale: Scale): Span {
  const left = positionOf(from, scale)
  return { left, width: Math.max(0, positionOf(to, scale) - left) }
}

/** What is drawn of an operation. */
export interface Bars {
  readonly spent: Span
  /** What it was allowed to take. */
  readonly granted: Span
  /** Without this much it would not have been begun. */
  readonly floor: Span
  /** At the end of what was left: kept back from it. */
  readonly reserve: Span
}

export function barsOf(entry: EntryView, elapsed: number, scale: Scale): Bars {
  const { start, spent, granted, floor, reserve, remaining } = entry
  const end = remaining === null ? Infinity : start + remaining
  return {
    spent: spanOf(start, start + (spent ?? Math.max(0, elapsed - start)), scale),
    granted: spanOf(start, start + (granted ?? Infinity), scale),
    floor: spanOf(start, floor > 0 ? start + floor : start, scale),
    reserve: reserve > 0 ? spanOf(end - reserve, end, scale) : { left: 0, width: 0 },
  }
}

/** Round numbers along the axis, from 0 on; at most seven. */
export function ticksOf({ end }: Scale): number[] {
  const rough = end / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough
  const ticks: number[] = []
  for (let index = 0; index * step < end * 0.97; index += 1) ticks.push(index * step)
  return ticks
}
