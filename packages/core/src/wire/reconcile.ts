import type { CodecName } from './codec.ts'
import type { HeaderReading } from './header.ts'
import { defaultSkewTolerance } from './skew.ts'
import type { PeerClock } from './skew.ts'

/** A deadline as it was received. */
export interface WireDeadline {
  /** Milliseconds left on arrival; 0 or less means that it had expired. */
  readonly remaining: number
  /** The absolute value received, epoch ms on the clock of whoever set it; sent on as long as our own clock agrees. */
  readonly epochMs?: number
  /** The header that decided; of a pair the relative one. */
  readonly codec: CodecName
  /** Milliseconds taken off for time spent waiting before the headers were read. */
  readonly charged: number
  /** Transit of this message in ms, clock difference included, where absolute and relative were both there. */
  readonly skew?: number
}

interface ClockOptions {
  readonly skewTolerance?: number
  readonly peer?: PeerClock
}

/** What ten digits can say at most; a sender that has more left writes this, so it measures nothing. */
const saturated = 9_999_999_999

const relativeOf: ReadonlyMap<CodecName, CodecName> = new Map([
  ['x-request-deadline', 'x-request-timeout-ms'],
  ['request-deadline-ms', 'request-timeout-ms'],
])

/** The earliest of all readings; an absolute one and its relative companion count as one. */
export function earliestDeadline(
  readings: readonly HeaderReading[],
  now: number,
  options: ClockOptions,
): WireDeadline | undefined {
  let earliest: WireDeadline | undefined
  for (const reading of readings) {
    if (hasAbsoluteCompanion(reading, readings)) continue
    const candidate = candidateOf(reading, readings, now, options)
    const [first, second] =
      earliest === undefined || candidate.remaining < earliest.remaining
        ? [candidate, earliest]
        : [earliest, candidate]
    earliest = second === undefined ? first : withMomentOf(second, first, options)
  }
  return earliest
}

/**
 * What is left counts by the earlier, but the moment that was set is sent on where the other says the same with it: a
 * protocol's own header beside the pair is rounded, and written a little later.
 */
function withMomentOf(
  later: WireDeadline,
  earlier: WireDeadline,
  { skewTolerance = defaultSkewTolerance }: ClockOptions,
): WireDeadline {
  const isSame = later.remaining - earlier.remaining <= skewTolerance
  if (earlier.epochMs !== undefined || later.epochMs === undefined || !isSame) return earlier
  return { ...earlier, epochMs: later.epochMs }
}

function hasAbsoluteCompanion(reading: HeaderReading, readings: readonly HeaderReading[]): boolean {
  return readings.some((other) => relativeOf.get(other.codec.name) === reading.codec.name)
}

function candidateOf(
  reading: HeaderReading,
  readings: readonly HeaderReading[],
  now: number,
  options: ClockOptions,
): WireDeadline {
  const { codec, earliest: value } = reading
  if (codec.kind === 'relative') return { remaining: value, codec: codec.name, charged: 0 }
  const companion = relativeOf.get(codec.name)
  const relative = readings.find((other) => other.codec.name === companion)
  if (relative !== undefined) return ofPair(relative, value, now, options)
  const tolerance = options.skewTolerance ?? defaultSkewTolerance
  return { remaining: withinTolerance(value - now, tolerance), epochMs: value, codec: codec.name, charged: 0 }
}

/** The relative value, which needs no clock, less what the absolute one shows to have been spent waiting. */
function ofPair(
  reading: HeaderReading,
  epochMs: number,
  now: number,
  { peer, skewTolerance = defaultSkewTolerance }: ClockOptions,
): WireDeadline {
  const relative = reading.earliest
  const codec = reading.codec.name
  if (relative >= saturated) return { remaining: relative, epochMs, codec, charged: 0 }
  const transit = now - (epochMs - relative)
  const charged = peer === undefined ? 0 : peer.observe(transit, now, skewTolerance).charged
  return { remaining: relative - charged, epochMs, codec, charged, skew: transit }
}

/** An absolute deadline alone: a clock that is off by less than the tolerance kills nothing. */
function withinTolerance(left: number, tolerance: number): number {
  return left >= tolerance ? left : Math.min(tolerance, left + tolerance)
}
