import type { Clock } from './clock.ts'
import type { Outcome } from './outcome.ts'

/** One operation of a request: what it was given, what it spent, how it ended. Milliseconds. */
export interface LedgerEntry {
  readonly name: string
  /** Names from the outermost operation to this one: `generate.rerank`. */
  readonly path: string
  /** Since the ledger was opened. */
  readonly start: number
  /** What was left of the request when it started. */
  readonly remaining: number
  /**
   * What it was allowed to take; `Infinity` if nothing bounds it. A peer does not tell: of its operations, the most that
   * they can have been allowed, which is what was left of the call to it.
   */
  readonly granted: number
  /** The least it was worth starting with. */
  readonly floor: number
  /** Kept back from it for what comes after. */
  readonly reserve: number
  /** Absent while it runs. */
  readonly spent: number | undefined
  /** Absent while it runs. */
  readonly outcome: Outcome | undefined
  /** `peer` if another service reported it about its own part of the request. */
  readonly source: 'local' | 'peer'
}

/** What is known of an operation when it starts. */
export type LedgerOpening = Pick<LedgerEntry, 'name' | 'remaining' | 'granted' | 'floor' | 'reserve'> & {
  readonly parent: LedgerEntry | undefined
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

// A request that runs for hours, an agent's for instance, must not grow for hours.
const mostEntries = 1024

/** What each operation of a request was given, spent, and how it ended, in the order of their start. */
export class Ledger {
  readonly #clock: Clock
  readonly #openedAt: number
  readonly #entries: Writable<LedgerEntry>[] = []
  #dropped = 0

  constructor(clock: Clock, openedAt: number) {
    this.#clock = clock
    this.#openedAt = openedAt
  }

  /** The operations in the order of their start, running ones included. */
  get entries(): readonly LedgerEntry[] {
    return this.#entries
  }

  /** How many entries did not fit; the first 1,024 are kept. */
  get dropped(): number {
    return this.#dropped
  }

  /** Notes the start of an operation; `close` notes its end. `now` is a reading of its clock just taken. */
  open(
    { name, parent, remaining, granted, floor, reserve }: LedgerOpening,
    now: number = this.#clock.now(),
  ): LedgerEntry {
    // field by field: a spread makes V8 build a new shape for every entry, a hundred times as slow
    return this.#keep({
      name,
      path: parent === undefined ? name : `${parent.path}.${name}`,
      start: now - this.#openedAt,
      remaining,
      granted,
      floor,
      reserve,
      spent: undefined,
      outcome: undefined,
      source: 'local',
    })
  }

  /** Notes the end; the first one counts. `now` is a reading of its clock just taken. */
  close(entry: LedgerEntry, outcome: Outcome, now: number = this.#clock.now()): void {
    const open: Writable<LedgerEntry> = entry
    if (open.outcome !== undefined) return
    open.outcome = outcome
    open.spent = now - this.#openedAt - entry.start
  }

  /** Takes in what a peer reported of its own operations while it worked for `under`. */
  addPeer(
    under: LedgerEntry,
    reports: Iterable<Pick<LedgerEntry, 'path' | 'start' | 'spent' | 'outcome'>>,
  ): void {
    for (const report of reports) {
      this.#keep({
        name: report.path.slice(report.path.lastIndexOf('.') + 1),
        path: `${under.path}.${report.path}`,
        start: under.start + report.start,
        remaining: Math.max(0, under.remaining - report.start),
        granted: Math.max(0, under.granted - report.start),
        floor: 0,
        reserve: 0,
        spent: report.spent,
        outcome: report.outcome,
        source: 'peer',
      })
    }
  }

  /** The entries, so that `JSON.stringify` writes them. */
  toJSON(): readonly LedgerEntry[] {
    return this.#entries
  }

  #keep(entry: Writable<LedgerEntry>): LedgerEntry {
    if (this.#entries.length < mostEntries) this.#entries.push(entry)
    else this.#dropped += 1
    return entry
  }
}
