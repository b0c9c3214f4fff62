import {
  type Clock,
  isTimeBudgetError,
  type Ledger,
  type LedgerEntry,
  type OperationFinished,
  type RequestFinished,
  type RequestStarted,
} from '@timebudget/core'
import type { Counts, RequestView } from '../snapshot.ts'
import { OutcomeTally } from './outcome-tally.ts'
import { RequestRecord } from './request-record.ts'

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
    const { request, deadline, outcome } = finished
    if (this.#hidden.has(request)) return []
    const record = this.#running.get(request) ?? this.#record(finished)
    this.#leave(request)
    record.finish(finished, this.#codeOf)
    this.#touch(record)
    this.#finished.push(record)
    if (this.#finished.length > this.#most) this.#finished.shift()
    this.#finishedCount += 1
    this.#outcomes.add(outcome)
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

  /** What has changed since a version, the longest ago first, and the version that this leads to. */
  changesSince(since: number): { requests: RequestView[]; version: number; more: boolean; kept: number[] } {
    const all = [...this.#running.values(), ...this.#finished]
    for (const record of this.#running.values()) if (record.hasGrown) this.#touch(record)
    const changed = all.filter((record) => record.changed > since)
    const part = changed.toSorted((one, other) => one.changed - other.changed).slice(0, mostAtOnce)
    const more = part.length < changed.length
    return {
      requests: part.map((record) => record.view(this.#codeOf)),
      version: more ? (part.at(-1)?.changed ?? this.#version) : this.#version,
      more,
      kept: all.map(({ beginning }) => beginning.id),
    }
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
