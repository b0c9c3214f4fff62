import type { Deadline } from '@timebudget/core'
import type { Breaker } from '@timebudget/resilience'
import { isContent, type ModelEvent } from '../model-events.ts'
import { wholeText, type RungScope } from './rung.ts'

type Source = AsyncIterable<ModelEvent> | Promise<AsyncIterable<ModelEvent> | string>

/**
 * One attempt to get an answer from a model. Up to its first content it belongs to the retry that began it; from then on
 * to the rung, so that its stream outlives the retry. The breaker watches it to the end of its stream.
 */
export class ModelAttempt {
  readonly #deadline: Deadline
  readonly #guard: Breaker | undefined
  readonly #attempt: number
  readonly #retrySignal: AbortSignal

  constructor({
    name,
    guard,
    scope,
    attempt,
    signal,
  }: {
    readonly name: string
    readonly guard: Breaker | undefined
    readonly scope: Pick<RungScope, 'deadline'>
    readonly attempt: number
    /** Ends it while it has no content. */
    readonly signal: AbortSignal
  }) {
    this.#guard = guard
    this.#attempt = attempt
    this.#retrySignal = signal
    this.#deadline = scope.deadline.child({ label: name })
  }

  get signal(): AbortSignal {
    return this.#deadline.signal
  }

  /** All events, once the first content is there. */
  async firstOf(start: () => Source): Promise<AsyncIterable<ModelEvent>> {
    const giveUp = (): void => this.#deadline.cancel(this.#retrySignal.reason)
    if (this.#retrySignal.aborted) giveUp()
    this.#retrySignal.addEventListener('abort', giveUp, { once: true })
    try {
      return await this.#guarded(start)
    } catch (error) {
      this.#deadline.cancel(error)
      throw error
    } finally {
      this.#retrySignal.removeEventListener('abort', giveUp)
    }
  }

  /** Opens within the breaker, which goes on until the stream has ended. */
  #guarded(start: () => Source): Promise<AsyncIterable<ModelEvent>> {
    const guard = this.#guard
    if (guard === undefined) return this.#open(start, ignore)
    return new Promise((resolve, reject) => {
      guard
        .run(
          () =>
            new Promise<void>((end, fail) => {
              const ended = (error?: unknown): void => (error === undefined ? end() : fail(error))
              this.#open(start, ended).then(resolve, fail)
            }),
          { operation: 'stream', attempt: this.#attempt, deadline: this.#deadline },
        )
        .catch(reject)
    })
  }

  async #open(start: () => Source, ended: (error?: unknown) => void): Promise<AsyncIterable<ModelEvent>> {
    const source = await start()
    const events = (typeof source === 'string' ? wholeText(source) : source)[Symbol.asyncIterator]()
    const before: ModelEvent[] = []
    for (;;) {
      const { done, value } = await events.next()
      if (done !== true) before.push(value)
      if (done === true || isContent(value)) break
    }
    return this.#rest(before, events, ended)
  }

  async *#rest(
    before: readonly ModelEvent[],
    events: AsyncIterator<ModelEvent>,
    ended: (error?: unknown) => void,
  ): AsyncGenerator<ModelEvent> {
    let isLeft = true
    try {
      yield* before
      for (;;) {
        const { done, value } = await events.next()
        if (done === true) break
        yield value
      }
      isLeft = false
      ended()
    } catch (error) {
      isLeft = false
      ended(error)
      throw error
    } finally {
      if (isLeft) {
        this.#deadline.cancel()
        ended(this.#deadline.reason)
        void events.return?.()?.catch(ignore)
      }
      this.#deadline.settle()
    }
  }
}

function ignore(): void {}
