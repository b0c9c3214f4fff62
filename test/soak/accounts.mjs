/* oxlint-disable typescript/prefer-readonly -- JavaScript has no readonly */
// What a hop owes: every deadline it has made and not settled, every request and operation that has begun and not ended.
import {
  Deadline,
  operationFinished,
  operationStarted,
  requestFinished,
  requestStarted,
} from '@timebudget/core'

/** A tick that comes so many milliseconds late shows that the process stood still: frozen, blocked or starved. */
const tick = 100
let stalled = 0
let tickedAt = performance.now()
setInterval(() => {
  const now = performance.now()
  stalled += Math.max(0, now - tickedAt - 2 * tick)
  tickedAt = now
}, tick).unref()

/** How long it has stood still in all; what goes on just now included. */
const stalledSoFar = () => stalled + Math.max(0, performance.now() - tickedAt - 2 * tick)

/** Keeps the books of this process; `tell` hears of requests as they begin and end, `wrong` of what cannot be. */
export class Accounts {
  requestsMade = 0
  requestsEnded = 0
  operationsMade = 0
  operationsEnded = 0
  deadlinesMade = 0
  deadlinesSettled = 0
  #requests = new Set()
  #entries = new Set()
  #unsettled = new Set()
  #ended = new WeakSet()

  constructor({ tell, wrong }) {
    this.#countSettled()
    requestStarted.subscribe(({ deadline, request }) => {
      this.requestsMade += 1
      this.#requests.add(request)
      this.#made(deadline)
      tell('started', { id: request.headers['x-soak-id'], at: Date.now(), stalled: stalledSoFar() })
    })
    requestFinished.subscribe(({ deadline, request, outcome, status, goneBy }) => {
      this.requestsEnded += 1
      if (!this.#requests.delete(request)) wrong(`a request ended twice: ${outcome}`)
      if (this.#unsettled.has(deadline)) wrong(`a request ended ${outcome} before its deadline was settled`)
      tell('finished', {
        id: request.headers['x-soak-id'],
        outcome,
        status,
        goneBy,
        at: Date.now(),
        stalled: stalledSoFar(),
      })
    })
    operationStarted.subscribe(({ deadline, entry }) => {
      this.operationsMade += 1
      this.#entries.add(entry)
      this.#made(deadline)
    })
    operationFinished.subscribe(({ deadline, entry }) => {
      const wasStarted = this.#entries.delete(entry)
      if (!wasStarted && this.#ended.has(entry)) wrong(`operation ${entry.path} ended twice`)
      this.#ended.add(entry)
      if (!wasStarted) return
      this.operationsEnded += 1
      // one that has ended by its time has told everybody, and holds nothing any more
      if (deadline.reason !== undefined) this.#settled(deadline)
    })
  }

  /** What has begun and not ended. */
  get open() {
    return this.#requests.size + this.#entries.size + this.#unsettled.size
  }

  toJSON() {
    const { requestsMade, requestsEnded, operationsMade, operationsEnded, deadlinesMade, deadlinesSettled } =
      this
    return { requestsMade, requestsEnded, operationsMade, operationsEnded, deadlinesMade, deadlinesSettled }
  }

  #made(deadline) {
    this.deadlinesMade += 1
    this.#unsettled.add(deadline)
  }

  #settled(deadline) {
    if (this.#unsettled.delete(deadline)) this.deadlinesSettled += 1
  }

  #countSettled() {
    const { settle } = Deadline.prototype
    const settled = (deadline) => this.#settled(deadline)
    Deadline.prototype.settle = function countedSettle() {
      settled(this)
      return settle.call(this)
    }
  }
}
