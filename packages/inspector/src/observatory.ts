import { randomUUID } from 'node:crypto'
import {
  breakerMoved,
  type Clock,
  floorJudged,
  headerMalformed,
  loopLagged,
  operationFinished,
  queueJudged,
  requestFinished,
  requestStarted,
  retryDecided,
  skewMeasured,
  systemClock,
  workLate,
} from '@timebudget/core'
import { ModelBook } from './books/model-book.ts'
import { OperationBook } from './books/operation-book.ts'
import { RequestBook, type SweepPlace } from './books/request-book.ts'
import { ServiceBook } from './books/service-book.ts'
import { roundToTenths } from './books/tenths.ts'
import { modelCallFinished, questionFinished } from './model-events.ts'
import type { Snapshot } from './snapshot.ts'

/** Everything that is known of this process's budgets, from events, in bounded memory. */
export class Observatory {
  readonly #session = randomUUID()
  readonly #clock: Clock
  readonly #requests: RequestBook
  readonly #operations = new OperationBook()
  readonly #models = new ModelBook()
  readonly #service: ServiceBook
  #stops: readonly (() => void)[] = []

  constructor({ requests, clock = systemClock }: { readonly requests: number; readonly clock?: Clock }) {
    this.#clock = clock
    this.#requests = new RequestBook({ most: requests, clock })
    this.#service = new ServiceBook(clock)
  }

  /** Listens to every event of the process, until `close`. */
  watch(): void {
    this.#stops = [
      requestStarted.subscribe((started) => this.#requests.begin(started)),
      requestFinished.subscribe((finished) => {
        for (const entry of this.#requests.finish(finished)) {
          if (entry.source === 'peer') this.#operations.add(entry)
        }
      }),
      operationFinished.subscribe((finished) => {
        this.#requests.noteOperation(finished)
        this.#operations.add(finished.entry)
      }),
      workLate.subscribe(({ kind, deadline }) => {
        if (kind === 'operation' && deadline.label !== undefined) this.#operations.addLate(deadline.label)
      }),
      floorJudged.subscribe((judged) => this.#operations.addJudged(judged)),
      retryDecided.subscribe(({ operation, stop }) => {
        if (stop === undefined) this.#operations.addRetry(operation)
      }),
      breakerMoved.subscribe((moved) => this.#service.addBreaker(moved)),
      queueJudged.subscribe((judged) => this.#service.addQueue(judged)),
      loopLagged.subscribe(({ lag }) => this.#service.addLag(lag)),
      skewMeasured.subscribe((measured) => this.#service.addSkew(measured)),
      headerMalformed.subscribe((malformed) => this.#service.addMalformed(malformed)),
      modelCallFinished.subscribe((call) => this.#models.addCall(call)),
      questionFinished.subscribe((question) => this.#models.addQuestion(question)),
    ]
  }

  /** Leaves a request out: the inspector's own. */
  hide(request: object): void {
    this.#requests.hide(request)
  }

  /** What a page is told that has come as far as its last snapshot's `place`, with all of the request it looks at. */
  snapshot({ place, request }: { readonly place?: string | null; readonly request?: number } = {}): Snapshot {
    const changes = this.#requests.changesFrom(readPlace(place ?? '', this.#session))
    const { since, sweep, before } = changes.place
    return {
      ...changes,
      session: this.#session,
      place: [this.#session, since, sweep, before].join('.'),
      now: roundToTenths(this.#clock.now()),
      request: request === undefined ? null : this.#requests.whole(request),
      counts: this.#requests.counts,
      operations: this.#operations.view(),
      models: this.#models.view(),
      service: this.#service.view(),
    }
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
  }
}

/** A place that this process has given; anything else is the beginning. */
function readPlace(place: string, session: string): SweepPlace {
  const [of, ...numbers] = place.split('.', 4)
  const [since = 0, sweep = 0, before = 0] = numbers.map((text) =>
    /^\d{1,15}$/.test(text) ? Number(text) : 0,
  )
  return of === session ? { since, sweep, before } : { since: 0, sweep: 0, before: 0 }
}
