import type { Deadline } from './deadline.ts'
import { defineEvent, type EventChannel } from './event-channel.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Outcome } from './outcome.ts'
import type { WorkWrapper } from './work-wrapper.ts'

/** How a request came by its budget. */
export type DeadlineSource = 'header' | 'default' | 'route' | 'local'

/** A request has got its deadline. */
export interface RequestStarted {
  readonly deadline: Deadline
  readonly source: DeadlineSource
  /** Whether the caller asked for more than `max`. */
  readonly clamped: boolean
  /** The framework's or Node's request. */
  readonly request: object
}

/** A request is over, in exactly one way. Milliseconds. */
export interface RequestFinished extends RequestStarted {
  /** The one that ruled it in the end: its own, or that of a route which has tightened it, and which began later. */
  readonly deadline: Deadline
  readonly outcome: Outcome
  /** The HTTP status that was sent, if any was. */
  readonly status: number | undefined
  /** Since the request began. */
  readonly elapsed: number
  /** What the request had in all, from its beginning to the deadline that ruled it in the end. */
  readonly budget: number
  /** How long after its deadline it ended; 0 if in time. */
  readonly overrun: number
  /** How the client left, if it did: `client_fin`, `client_reset`, `h2_rst_8`, ... */
  readonly goneBy: string | undefined
}

/** An operation has begun. */
export interface OperationStarted {
  readonly deadline: Deadline
  readonly entry: LedgerEntry
  /** Lets its work be run inside a context of the listener's: the work is called through `wrap`, once, whatever that does. */
  around(wrap: WorkWrapper): void
}

/** An operation has ended; `error` is what it failed with, if it did. */
export interface OperationFinished {
  readonly deadline: Deadline
  readonly entry: LedgerEntry
  readonly error: unknown
}

/** A client has decided whether a call carries its deadline to another service. */
export interface DeadlineSent {
  /** The deadline of the call's operation. */
  readonly deadline: Deadline
  /** The host that was called. */
  readonly host: string
  /** `false` for hosts that get none. */
  readonly sent: boolean
}

/** Work that went on after its end came to a result that nobody gets. */
export interface WorkLate {
  readonly kind: 'answer' | 'operation'
  /** The operation's name. */
  readonly operation: string | undefined
  readonly deadline: Deadline
  /** Milliseconds after the end. */
  readonly lateBy: number
}

/** A header that could not be read, and was therefore ignored or rejected. */
export interface HeaderMalformed {
  readonly header: string
  /** Cut and cleaned of control characters; it came from a stranger. */
  readonly value: string
  readonly peer: string | undefined
}

/** A peer's clock differs from ours by this many milliseconds, transit included. */
export interface SkewMeasured {
  readonly peer: string
  readonly skew: number
  /** Whether it is 20 ms or more, and was not yet said of this peer in the last minute. */
  readonly worthWarning: boolean
}

/** Published when a request has got its deadline. */
export const requestStarted: EventChannel<RequestStarted> = defineEvent('timebudget:request.started')
/** Published when a request is over, once for each. */
export const requestFinished: EventChannel<RequestFinished> = defineEvent('timebudget:request.finished')
/** Published before the work of an operation begins. */
export const operationStarted: EventChannel<OperationStarted> = defineEvent('timebudget:operation.started')
/** Published when an operation has ended, also one that was refused. */
export const operationFinished: EventChannel<OperationFinished> = defineEvent('timebudget:operation.finished')
/** Published for each call of a client that could carry a deadline. */
export const deadlineSent: EventChannel<DeadlineSent> = defineEvent('timebudget:deadline.sent')
/** Published when work that nobody waits for any more comes to its result. */
export const workLate: EventChannel<WorkLate> = defineEvent('timebudget:work.late')
/** Published for each deadline header that could not be read. */
export const headerMalformed: EventChannel<HeaderMalformed> = defineEvent('timebudget:header.malformed')
/** Published when a request tells how far its sender's clock is off. */
export const skewMeasured: EventChannel<SkewMeasured> = defineEvent('timebudget:skew.measured')
