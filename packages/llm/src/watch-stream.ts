import {
  type Clock,
  type Deadline,
  findTimeBudgetError,
  isAtTheEdge,
  refuseUnknownOptions,
  type RunningOperation,
  startOperation,
  systemClock,
  UpstreamError,
  waitOutTheEdge,
} from '@timebudget/core'
import { isContentItem, sizeOf } from './item-content.ts'
import { limitError } from './limit-errors.ts'
import { type Limits, limitsFor, type Profile } from './profiles.ts'
import { StreamGovernor } from './stream-governor.ts'
import { assertSource, type OpenSource, openSource, type StreamSource } from './stream-source.ts'

/** How a stream is watched. */
export interface WatchOptions<T> {
  /** Whether an item holds what somebody waits for; by default whatever does in the streams of OpenAI, Anthropic, the AI SDK and LangChain, and every item of others. */
  readonly isContent?: ((item: T) => boolean) | undefined
  /** In place of the ambient one. */
  readonly deadline?: Deadline | undefined
  /** Ends it when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** The operation's name in the ledger; `'stream'`. */
  readonly operation?: string | undefined
  /** Own profiles by name, besides the built-in ones. */
  readonly profiles?: Readonly<Record<string, Profile>> | undefined
  /** Items read ahead of a slow reader; 64. */
  readonly ahead?: number | undefined
  readonly clock?: Clock | undefined
}

const optionNames = [
  'isContent',
  'deadline',
  'signal',
  'operation',
  'profiles',
  'ahead',
  'clock',
] as const satisfies (keyof WatchOptions<unknown>)[]

const defaultAhead = 64

/**
 * The same stream, under a profile's limits (but `connect`) and the deadline, whichever ends first. The limits run from
 * the first `next()`, and judge the source alone: a reader may take its time. What ends it stops the source.
 *
 *     for await (const chunk of watchStream(stream, 'chat')) response.write(chunk)
 *
 * Iterating throws FirstTokenTimeoutError, StreamStalledError, TotalTimeoutError, UpstreamError with what the source
 * failed with as the cause, or the deadline's reason.
 * @throws TypeError that names the option which cannot be read.
 */
export function watchStream<T>(
  source: StreamSource<T>,
  profile: string | Profile,
  options: WatchOptions<T> = {},
): AsyncIterableIterator<T> {
  assertSource(source)
  refuseUnknownOptions(options, optionNames)
  const { ahead = defaultAhead, profiles = {} } = options
  if (!Number.isInteger(ahead) || ahead < 1)
    throw new TypeError('ahead: expected a whole number of at least 1')
  const limits = limitsFor(profile, profiles, { model: undefined, task: undefined, url: '' })
  return new WatchedStream(source, { ...options, ahead, limits })
}

type Watching<T> = Omit<WatchOptions<T>, 'ahead'> & { readonly ahead: number; readonly limits: Limits }

class WatchedStream<T> implements AsyncIterableIterator<T> {
  readonly #given: StreamSource<T>
  readonly #how: Watching<T>
  readonly #clock: Clock
  readonly #ahead: T[] = []
  #source: OpenSource<T> | undefined
  #running: RunningOperation | undefined
  #governor: StreamGovernor | undefined
  #startedAt = 0
  #contentItems = 0
  #end: { readonly error?: unknown } | undefined
  #wake: (() => void) | undefined
  #makeRoom: (() => void) | undefined

  constructor(source: StreamSource<T>, how: Watching<T>) {
    this.#given = source
    this.#how = how
    this.#clock = how.clock ?? systemClock
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#source === undefined && this.#end === undefined) this.#start()
    while (this.#ahead.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.#ahead.length > 0) {
      const value = this.#ahead.shift() as T
      if (this.#ahead.length <= this.#how.ahead / 2) this.#makeRoom?.()
      return { done: false, value }
    }
    const end = this.#end
    this.#end = {}
    if (end !== undefined && 'error' in end) throw end.error
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#running?.end('cancelled')
    this.#stop({}, { forgets: true })
    return { done: true, value: undefined }
  }

  #start(): void {
    const { operation = 'stream', deadline, signal, limits } = this.#how
    const running = startOperation(operation, { deadline, signal })
    this.#running = running
    this.#startedAt = this.#clock.now()
    this.#source = openSource(this.#given)
    this.#governor = new StreamGovernor({
      limits,
      clock: this.#clock,
      awaitsFirstToken: true,
      onLimit: (limit) => {
        // its own end is a matter of milliseconds, and counts
        if (isAtTheEdge(running.deadline)) return
        const remaining = running.deadline.remaining()
        const passed = {
          operation,
          limit,
          limits,
          elapsed: this.#elapsed(),
          remaining: remaining === Infinity ? undefined : remaining,
          contentChunks: this.#contentItems,
        }
        this.#stop({ error: running.fail(limitError(passed)) }, { forgets: false })
      },
    })
    running.onCutOff((error) => this.#stop({ error }, { forgets: true }))
    void this.#pump(this.#source, this.#governor, running)
  }

  async #pump(source: OpenSource<T>, governor: StreamGovernor, running: RunningOperation): Promise<void> {
    try {
      while (this.#end === undefined) {
        await this.#room(governor)
        const { done, value } = await source.next()
        if (this.#end !== undefined) return
        if (done === true) {
          const reason = running.end()
          return this.#finish(reason === undefined ? {} : { error: reason })
        }
        this.#take(value, governor)
      }
    } catch (error) {
      await waitOutTheEdge(running.deadline)
      const failure = findTimeBudgetError(error) ?? this.#sourceFailed(running.entry.name, error)
      this.#stop({ error: running.fail(failure) }, { forgets: false })
    }
  }

  #sourceFailed(operation: string, error: unknown): UpstreamError {
    const message = error instanceof Error ? error.message : String(error)
    const details = { operation, elapsed: this.#elapsed(), cause: error }
    return new UpstreamError(`${operation} failed: ${message}`, details)
  }

  #take(item: T, governor: StreamGovernor): void {
    const { isContent = isContentItem } = this.#how
    governor.transport(sizeOf(item))
    if (isContent(item)) {
      this.#contentItems += 1
      governor.content()
    }
    this.#ahead.push(item)
    this.#wake?.()
  }

  async #room(governor: StreamGovernor): Promise<void> {
    if (this.#ahead.length < this.#how.ahead) return
    governor.hold()
    await new Promise<void>((resolve) => {
      this.#makeRoom = resolve
    })
    this.#makeRoom = undefined
    governor.resume()
  }

  /** Ends it before its source has ended. */
  #stop(end: { readonly error?: unknown }, { forgets }: { readonly forgets: boolean }): void {
    if (this.#end !== undefined) return
    if (forgets) this.#ahead.length = 0
    this.#finish(end)
    this.#source?.stop()
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end
    this.#governor?.done()
    this.#wake?.()
    this.#makeRoom?.()
  }

  #elapsed(): number {
    return this.#clock.now() - this.#startedAt
  }
}
