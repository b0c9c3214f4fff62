import type { BreakerMoved, Clock, HeaderMalformed, QueueJudged, SkewMeasured } from '@timebudget/core'
import { cleanText, shorten } from '../clean-text.ts'
import type { BreakerView, LagView, QueueView, ServiceView, SkewView } from '../snapshot.ts'
import { RecentMap } from './recent-map.ts'
import { roundToTenths } from './tenths.ts'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const mostOfAKind = 100

/** What is not about a single request: clocks, breakers, queues, the event loop, headers that cannot be read. */
export class ServiceBook {
  readonly #clock: Clock
  readonly #skews = new RecentMap<string, Writable<SkewView>>(mostOfAKind)
  readonly #breakers = new RecentMap<string, Writable<BreakerView>>(mostOfAKind)
  readonly #queues = new RecentMap<string, Writable<QueueView>>(mostOfAKind)
  readonly #malformed = new RecentMap<string, { readonly header: string; count: number }>(mostOfAKind)
  #lag: LagView | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  addSkew({ peer, skew }: SkewMeasured): void {
    const last = roundToTenths(skew)
    const view = this.#skews.of(shorten(peer), () => ({
      peer: cleanText(peer),
      count: 0,
      last,
      least: last,
      most: last,
    }))
    view.count += 1
    view.last = last
    view.least = Math.min(view.least, last)
    view.most = Math.max(view.most, last)
  }

  addBreaker({ breaker, to }: BreakerMoved): void {
    const view = this.#breakers.of(shorten(breaker), () => ({
      name: cleanText(breaker),
      state: to,
      since: 0,
      opened: 0,
    }))
    view.state = to
    view.since = roundToTenths(this.#clock.now())
    if (to === 'open') view.opened += 1
  }

  addQueue({ queue, decision, waiting, running, waited }: QueueJudged): void {
    const view = this.#queues.of(shorten(queue), () => ({
      name: cleanText(queue),
      waiting,
      running,
      admitted: 0,
      shed: 0,
      left: 0,
      waited: 0,
      waitedMost: 0,
    }))
    view[decision] += 1
    view.waiting = waiting
    view.running = running
    view.waited = roundToTenths(waited)
    view.waitedMost = Math.max(view.waitedMost, view.waited)
  }

  addLag(lag: number): void {
    const last = roundToTenths(lag)
    this.#lag = { last, most: Math.max(this.#lag?.most ?? 0, last) }
  }

  /** Counts it by its name; its value is a stranger's and is not kept. */
  addMalformed({ header }: Pick<HeaderMalformed, 'header'>): void {
    this.#malformed.of(shorten(header), () => ({ header: cleanText(header), count: 0 })).count += 1
  }

  view(): ServiceView {
    return {
      skews: this.#skews.values(),
      breakers: this.#breakers.values(),
      queues: this.#queues.values(),
      lag: this.#lag,
      malformed: this.#malformed.values(),
    }
  }
}
