import {
  type Clock,
  isTimeBudgetError,
  type Ledger,
  type LedgerEntry,
  type OperationFinished,
  type RequestFinished,
  type RequestStarted,
} from '@timebudget/core'
import type { Counts, RequestView, WholeRequest } from '../snapshot.ts'
import { OutcomeTally } from './outcome-tally.ts'
import { RequestRecord } from './request-record.ts'

/** How far a page has come: it knows all changes up to `since`, and in this sweep all requests from `before` on. */
export interface SweepPlace {
  readonly since: number
  /** The version at which the sweep began. */
  readonly sweep: number
  /** 0 at the beginning of a sweep. */
  readonly before: number
}

/** What one answer to the page tells of requests. */
export interface Changes {
  readonly requests: readonly RequestView[]
  readonly place: SweepPlace
  readonly more: boolean
  readonly kept: readonly number[]
}

/** What one answer to the page holds at most: the rest it asks for at once. */
const mostAtOnce = 200

/** The requests that run, and the latest that have finished; of each at most so many, whatever comes. */
export class RequestBook {
  readonly #most: number
  readonly #clock: Clock
  readonly #running = new Map<object, RequestRecord>()
  readonly #finished: RequestRecord[] = []
  readonly #outcomes = new OutcomeTally()
  readonly #byLedger = new WeakMap<Ledger, RequestRecord>()
  readonly #unlisted = new WeakSet<object>()
  readonly #hidden = new WeakSet<object>()
  readonly #codes = new WeakMap<LedgerEntry, string>()
  readonly #codeOf = (entry: LedgerEntry): string | undefined => this.#codes.get(entry)
  #finishedCount = 0
  #unlistedCount = 0
  #lastId = 0
  #version = 0

  constructor({ most, clock }: { readonly most: number; readonly clock: Clock }) {
    this.#most = most
    this.#clock = clock
  }

  begin(started: RequestStarted): void {
    const { request } = started
    if (this.#running.size < this.#most) {
      this.#running.set(request, this.#record(started))
      return
    }
    this.#unlisted.add(request)
    this.#unlistedCount += 1
  }

  /** Leaves a request out: the inspector's own. */
  hide(request: object): void {
    this.#hidden.add(request)
    this.#leave(request)
  }

  /** Returns the entries of the request, once; none of those that are hidden. */
  finish(finished: RequestFinished): readonly LedgerEntry[] {
    const { request, deadline } = finished
    if (this.#hidden.has(request)) return []
    const record = this.#running.get(request) ?? this.#record(finished)
    this.#leave(request)
    this.#outcomes.add(record.finish(finished, this.#codeOf))
    this.#touch(record)
    this.#finished.push(record)
    if (this.#finished.length > this.#most) this.#finished.shift()
    this.#finishedCount += 1
    return deadline.ledger.entries
  }

  noteOperation({ deadline, entry, error }: OperationFinished): void {
    const code = codeOf(error)
    if (code !== undefined) this.#codes.set(entry, code)
    const record = this.#byLedger.get(deadline.ledger)
    if (record === undefined) return
    // work that goes on after its request was answered comes to its end all the same
    if (record.finished) record.copy(deadline.ledger, this.#codeOf)
    this.#touch(record)
  }

  /** What has changed since the last sweep, the latest requests first. */
  changesFrom({ since, sweep, before }: SweepPlace): Changes {
    const all = [...this.#finished, ...this.#running.values()]
    for (const record of this.#running.values()) if (record.takeGrowth()) this.#touch(record)
    // what changes while a sweep is on its way is the next one's: going by the change, some would never have their turn
    const begun = before === 0 ? this.#version : sweep
    const changed = all
      .filter(({ changed: at, beginning: { id } }) => at > since && (before === 0 || id < before))
      .sort((one, other) => other.beginning.id - one.beginning.id)
    const part = changed.slice(0, mostAtOnce)
    const last = part.at(-1)
    const more = last !== undefined && part.length < changed.length
    return {
      requests: part.map((record) => record.view(this.#codeOf)),
      place: more
        ? { since, sweep: begun, before: last.beginning.id }
        : { since: begun, sweep: begun, before: 0 },
      more,
      kept: all.map(({ beginning }) => beginning.id),
    }
  }

  /** All that is known of one request; `null` if it is not kept. */
  whole(id: number): WholeRequest | null {
    const isIt = ({ beginning }: RequestRecord): boolean => beginning.id === id
    const record = this.#finished.find(isIt) ?? [...this.#running.values()].find(isIt)
    return record?.whole(this.#codeOf) ?? null
  }

  get counts(): Counts {
    return {
      running: this.#running.size + this.#unlistedCount,
      finished: this.#finishedCount,
      unlisted: this.#unlistedCount,
      outcomes: this.#outcomes.view(),
    }
  }

  #leave(request: object): void {
    this.#running.delete(request)
    if (this.#unlisted.delete(request)) this.#unlistedCount -= 1
  }

  #record(started: RequestStarted): RequestRecord {
    this.#lastId += 1
    const place = { id: this.#lastId, now: this.#clock.now(), epoch: this.#clock.epoch() }
    const record = new RequestRecord(started, place)
    this.#byLedger.set(started.deadline.ledger, record)
    this.#touch(record)
    return record
  }

  #touch(record: RequestRecord): void {
    this.#version += 1
    record.changed = this.#version
  }
}

/** A failure's code, if it has one that looks like one; a message may hold anything. */
function codeOf(error: unknown): string | undefined {
  if (error === undefined || error === null || typeof error !== 'object') return undefined
  if (isTimeBudgetError(error)) return error.code
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,47}$/.test(code) ? code : undefined
}
