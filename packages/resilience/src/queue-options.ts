import {
  type Clock,
  type Duration,
  currentDeadline,
  Deadline,
  type Floor,
  parseDuration,
  systemClock,
  refuseUnknownOptions,
} from '@timebudget/core'
import { Latency } from './latency.ts'
import { LatencyBook } from './latency-book.ts'
import { positiveInteger, textOf } from './option-values.ts'

/** How long the work of a request takes: always so long, as learned, as learned per key, or told by a function of it. */
export type QueueEstimate =
  | Duration
  | Latency
  | LatencyBook
  | ((request: QueueRequest) => Duration | undefined)

/** What a queue needs to know. */
export interface DeadlineQueueOptions {
  /** How many may work at the same time. */
  readonly slots: number
  /** For messages, events and the ledger; `'queue'`. */
  readonly name?: string | undefined
  /** How long the work takes; without it nobody is refused by time, and the newest goes first. */
  readonly estimate?: QueueEstimate | undefined
  /** With so many waiting whoever comes is refused: a bound on memory, not on time; 10,000. */
  readonly maxWaiting?: number | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/** What is wanted of a slot. */
export interface QueueRequest {
  /** The work's name in the ledger; the queue's name. */
  readonly operation?: string | undefined
  /** Under which its duration is learned; the operation's name. */
  readonly key?: string | undefined
  /** What shares the slots fairly with other classes; by default work that takes about as long is one class. */
  readonly class?: string | undefined
  /** The least number goes first; 0. */
  readonly priority?: number | undefined
  /** How long this very work takes. */
  readonly estimate?: Duration | undefined
  /** For waiting and working together. */
  readonly timeout?: Duration | undefined
  /** Not worth starting with less than this, once it is its turn. */
  readonly floor?: Floor | undefined
  /** Kept back for what comes after it. */
  readonly reserve?: Duration | undefined
  /** The deadline it stands under, in place of the ambient one. */
  readonly deadline?: Deadline | undefined
  /** Cancels it when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** Which attempt of the same work it is, from 1. */
  readonly attempt?: number | undefined
}

/** `DeadlineQueueOptions` with every default filled in. */
export interface ResolvedQueueOptions {
  readonly slots: number
  readonly name: string
  readonly estimate: Exclude<QueueEstimate, string> | undefined
  readonly maxWaiting: number
  readonly clock: Clock
}

/**
 * Fills in the defaults.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveQueueOptions(options: DeadlineQueueOptions): ResolvedQueueOptions {
  refuseUnknownOptions(options, ['slots', 'name', 'estimate', 'maxWaiting', 'clock'])
  const { maxWaiting = 10_000, name = 'queue' } = options
  return Object.freeze({
    slots: positiveInteger(options.slots, 'slots'),
    name: textOf(name, 'name'),
    estimate: readEstimate(options.estimate),
    maxWaiting: maxWaiting === Infinity ? Infinity : wholeNumber(maxWaiting, 'maxWaiting'),
    clock: options.clock ?? systemClock,
  })
}

/** A request with every default filled in; durations in milliseconds. */
export interface ResolvedRequest {
  readonly asked: Pick<QueueRequest, 'floor' | 'signal' | 'attempt'>
  readonly operation: string
  readonly key: string
  readonly class: string | undefined
  readonly priority: number
  readonly estimate: number | undefined
  readonly timeout: number
  readonly reserve: number
  readonly deadline: Deadline
}

const requestNames: Readonly<Record<keyof QueueRequest, true>> = {
  operation: true,
  key: true,
  class: true,
  priority: true,
  estimate: true,
  timeout: true,
  floor: true,
  reserve: true,
  deadline: true,
  signal: true,
  attempt: true,
}

/**
 * Fills in the defaults of a request, the ambient deadline among them.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveRequest(
  request: QueueRequest,
  { name, clock, estimate: estimator }: ResolvedQueueOptions,
): ResolvedRequest {
  for (const option in request) {
    if (!Object.hasOwn(requestNames, option)) refuseUnknownOptions(request, Object.keys(requestNames))
  }
  const { operation = name, priority = 0 } = request
  const estimate = request.estimate ?? (typeof estimator === 'function' ? estimator(request) : undefined)
  if (typeof priority !== 'number' || !Number.isFinite(priority))
    throw new TypeError('priority: expected a number, the least goes first')
  return {
    asked: request,
    operation: textOf(operation, 'operation'),
    key: textOf(request.key ?? operation, 'key'),
    class: request.class === undefined ? undefined : textOf(request.class, 'class'),
    priority,
    estimate: estimate === undefined ? undefined : parseDuration(estimate, 'estimate'),
    timeout: request.timeout === undefined ? Infinity : parseDuration(request.timeout, 'timeout'),
    reserve: request.reserve === undefined ? 0 : parseDuration(request.reserve, 'reserve'),
    // not left to the operation: whoever frees the slot stands under another deadline
    deadline: request.deadline ?? currentDeadline() ?? Deadline.after(Infinity, { clock }),
  }
}

function readEstimate(estimate: QueueEstimate | undefined): ResolvedQueueOptions['estimate'] {
  if (estimate === undefined || typeof estimate === 'function') return estimate
  if (estimate instanceof Latency || estimate instanceof LatencyBook) return estimate
  return parseDuration(estimate, 'estimate')
}

function wholeNumber(value: number, option: string): number {
  if (Number.isInteger(value) && value >= 0) return value
  throw new TypeError(`${option}: expected a whole number or Infinity, got ${String(value)}`)
}
