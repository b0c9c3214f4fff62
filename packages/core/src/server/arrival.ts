import { type Deadline, internals } from '../deadline.ts'
import { type Duration, parseFloor } from '../duration.ts'
import { BudgetTooSmallError, DeadlineExceededError, type TimeBudgetError } from '../errors.ts'
import { type DeadlineSource, headerMalformed, skewMeasured } from '../events.ts'
import {
  decodeAttempt,
  type Decoded,
  decodeDeadline,
  type HeaderSource,
  PeerClocks,
  type WireDeadline,
} from '../wire/index.ts'
import { carriesAny } from '../wire/decode.ts'
import type { ResolvedServerOptions, Trust } from './options.ts'

/** What has to be known of a request: Node's own, or a call of another protocol. */
export interface Arriving {
  readonly headers: HeaderSource
  readonly socket?: { readonly remoteAddress?: string | undefined } | null
}

/** The server's options, with what it decides by requests of this kind. */
export type ArrivalOptions<R> = Omit<ResolvedServerOptions, 'trust' | 'chooseBudget'> & {
  readonly trust: (request: R) => Trust
  readonly chooseBudget: ((request: R) => Duration | undefined) | undefined
}

/** What a request's headers and the options come to. */
export interface ReadArrival {
  readonly deadline: Deadline
  readonly arrival: Arrival
}

/** How a request has arrived. */
export interface Arrival {
  readonly source: DeadlineSource
  /** Whether the caller asked for more than `max`. */
  readonly clamped: boolean
  /** Why the handler is not entered. */
  readonly refusal: TimeBudgetError | undefined
  /** Members for the refusal's body that show a caller whose clock is off what happened. */
  readonly extra: Readonly<Record<string, number>> | undefined
  /** The header that could not be read, where that is answered with 400. */
  readonly malformedHeader: string | undefined
}

const peerClocks = new PeerClocks()

/** Reads the deadline of a request that has just arrived, and which attempt its caller says it is. */
export function readArrival<R extends Arriving>(request: R, options: ArrivalOptions<R>): ReadArrival {
  if (!carriesAny(request.headers, options.headersRead) || !isTrusted(request, options))
    return arrivalWithout(options)
  const read = readDeadline(request, options)
  internals.setAttempt(read.deadline, decodeAttempt(request.headers))
  return read
}

function readDeadline<R extends Arriving>(request: R, options: ArrivalOptions<R>): ReadArrival {
  const { clock } = options
  const peer = request.socket?.remoteAddress
  const now = clock.epoch()
  const { skewTolerance } = options
  const decoded = decodeDeadline(
    request.headers,
    options.accept,
    now,
    peer === undefined ? { skewTolerance } : { skewTolerance, peer: peerClocks.of(peer) },
  )
  report(decoded, { peer, now })
  const malformedHeader = options.malformed === 'reject' ? decoded.malformed[0]?.header : undefined
  const received = decoded.deadline
  if (received === undefined) return arrivalWithout(options, malformedHeader)
  const allowed = received.remaining - options.reserve
  const clamped = allowed > options.max
  const epochMs = clamped || received.epochMs === undefined ? undefined : received.epochMs - options.reserve
  const deadline = internals.fromWire({
    remaining: Math.min(allowed, options.max),
    epochMs,
    skewTolerance,
    clock,
  })
  const refusal = options.shutdown?.refusal ?? refuse(received, options)
  const extra = clockMembers(received, now)
  return { deadline, arrival: { source: 'header', clamped, refusal, extra, malformedHeader } }
}

function arrivalWithout(options: ArrivalOptions<never>, malformedHeader?: string): ReadArrival {
  const { clock, budget, skewTolerance, shutdown } = options
  const deadline = internals.fromWire({ remaining: budget, epochMs: undefined, skewTolerance, clock })
  const refusal = shutdown?.refusal
  const isPlain = refusal === undefined && malformedHeader === undefined
  return { deadline, arrival: isPlain ? plainArrival : { ...plainArrival, refusal, malformedHeader } }
}

/** Of nearly all requests at an entry: one object for all of them. */
const plainArrival: Arrival = Object.freeze({
  source: 'default',
  clamped: false,
  refusal: undefined,
  extra: undefined,
  malformedHeader: undefined,
})

/** A decision that fails is none in the caller's favour. */
function isTrusted<R>(request: R, { trust }: Pick<ArrivalOptions<R>, 'trust'>): boolean {
  try {
    return trust(request) === 'clamp'
  } catch (error) {
    process.emitWarning(`trust failed: ${String(error)}`, 'TimeBudgetWarning')
    return false
  }
}

/** What is left too little to begin with, if it is. */
function refuse(
  received: WireDeadline,
  { floor, reserve }: Pick<ResolvedServerOptions, 'floor' | 'reserve'>,
): TimeBudgetError | undefined {
  const remaining = Math.max(0, received.remaining)
  const needed = parseFloor(floor, 'floor', remaining - reserve) + reserve
  const details = { budget: remaining, elapsed: 0, remaining }
  if (remaining < needed || (remaining === needed && reserve > 0)) {
    const message = `the request needs ${Math.ceil(needed)} ms, ${Math.floor(remaining)} ms were left when it arrived`
    return new BudgetTooSmallError(message, details)
  }
  if (remaining > 0) return undefined
  return new DeadlineExceededError('the deadline had passed when the request arrived', details)
}

function clockMembers(
  { epochMs, skew }: WireDeadline,
  serverNow: number,
): Readonly<Record<string, number>> | undefined {
  if (epochMs === undefined) return undefined
  return { serverNow, deadline: epochMs, ...(skew === undefined ? {} : { skewMs: Math.round(skew) }) }
}

function report(
  { deadline, malformed }: Decoded,
  { peer, now }: { readonly peer: string | undefined; readonly now: number },
): void {
  for (const { header, value } of malformed) headerMalformed.publish(() => ({ header, value, peer }))
  const skew = deadline?.skew
  if (skew === undefined || peer === undefined) return
  skewMeasured.publish(() => ({
    peer,
    skew,
    worthWarning: peerClocks.of(peer).takeWarning(now) !== undefined,
  }))
}
