import { type Deadline, type Outcome, outcomeOf, runWithDeadline } from '@timebudget/core'
import { type ErrorData, errorDataOf } from './error-data.ts'
import type { OutgoingEvent } from './frame.ts'
import { readAll, UntilClosed } from './until-closed.ts'

/** Data of a `token` event: a piece of the answer, and whatever else the page is to know of it. */
export interface TokenData {
  readonly text: string
  /** `'reasoning'` and `'tool'` are no part of the text; left out, it is `'text'`. */
  readonly type?: string | undefined
}

/** What work for a stream runs under. */
export interface StreamScope {
  readonly deadline: Deadline
  /** Aborts when nobody waits for the stream any more. */
  readonly signal: AbortSignal
}

/** What tokens come from; as a function it is called under the stream's deadline. */
export type TokenSource<T> =
  | AsyncIterable<T>
  | ((scope: StreamScope) => AsyncIterable<T> | Promise<AsyncIterable<T>>)

type ReservedName = 'stream' | 'heartbeat' | 'token' | 'done' | 'error'
const reserved: ReadonlySet<string> = new Set(['stream', 'heartbeat', 'token', 'done', 'error'])

/** Data of the `done` event. */
export type DoneData<Events extends object> = Events extends { readonly done: infer Done } ? Done : unknown

/** How `pipe` ended. */
export interface PipeEnd {
  /** `ok`, or why not all of it was sent: `client_closed`, `deadline_exceeded`, `error`, ... */
  readonly outcome: Outcome
  /** What the source threw. */
  readonly error?: unknown
}

/** Where a stream's events go: to a connection, or to a record that connections read. */
export interface EventSink {
  readonly deadline: Deadline
  /** The id by which the stream can be taken up again. */
  readonly id: string | undefined
  readonly closed: boolean
  send(event: OutgoingEvent): Promise<boolean>
  end(event: OutgoingEvent): Promise<boolean>
  /** Calls back once nothing can be sent any more. */
  onClosed(listener: () => void): void
}

/**
 * Events to one client. Every write returns a promise that settles once the client keeps up (`true`), or has left, or the
 * time is up (`false`), and never rejects. `Events` names the data of each event, `done` among them.
 */
export class EventStream<Events extends object = Record<string, unknown>> {
  readonly #sink: EventSink

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  /** The id by which a client takes the stream up again; `undefined` without `resume`. */
  get id(): string | undefined {
    return this.#sink.id
  }

  /** What the work for this stream runs under: the request's deadline, or with `resume` one of its own. */
  get deadline(): Deadline {
    return this.#sink.deadline
  }

  /** Aborts when nobody waits for the stream any more: pass it to whatever produces the answer. */
  get signal(): AbortSignal {
    return this.#sink.deadline.signal
  }

  /** Whether it has ended: nothing that is sent now arrives. */
  get closed(): boolean {
    return this.#sink.closed
  }

  /** A piece of the answer. */
  token(token: string | TokenData): Promise<boolean> {
    return this.#sink.send({ event: 'token', data: typeof token === 'string' ? { text: token } : token })
  }

  /**
   * An event of your own. An `id` is only for streams without `resume`, which numbers its events itself.
   * @throws TypeError for a name that is no single line, or stands for something else, and for data that is no JSON.
   */
  send<Name extends Exclude<keyof Events & string, ReservedName>>(
    event: Name,
    data: Events[Name],
    options: { readonly id?: string | undefined } = {},
  ): Promise<boolean> {
    if (reserved.has(event)) throw new TypeError(`event: '${event}' is not for events of your own`)
    return this.#sink.send({ event, data, id: options.id })
  }

  /** The answer is complete: ends the stream. */
  done(data?: DoneData<Events>): Promise<boolean> {
    return this.#sink.end({ event: 'done', data: data ?? {} })
  }

  /** The answer stays incomplete: ends the stream. Of errors that are not ours, nothing but that they happened is told. */
  error(error: unknown): Promise<boolean> {
    const data: ErrorData = errorDataOf(error)
    return this.#sink.end({ event: 'error', data })
  }

  /** Runs work under the stream's deadline: with `resume` it outlives the request. */
  run<T>(work: (scope: StreamScope) => T): T {
    const { deadline } = this
    return runWithDeadline(deadline, () => work({ deadline, signal: deadline.signal }))
  }

  /**
   * Sends all tokens of a source, then `done`; an `error` event if the source fails. The source is left as soon as nobody
   * waits for it, even if it does not react. Never rejects.
   */
  async pipe<T extends string | TokenData>(
    source: TokenSource<T>,
    options: { readonly done?: (() => DoneData<Events> | PromiseLike<DoneData<Events>>) | undefined } = {},
  ): Promise<PipeEnd> {
    const open = new UntilClosed(this.#sink)
    try {
      const items = await open.wait(() => (typeof source === 'function' ? this.run(source) : source))
      const isAll =
        items !== undefined && (await readAll(items.value, { open, use: (token) => this.token(token) }))
      const data = isAll ? await open.wait(() => options.done?.()) : undefined
      if (data !== undefined && (await this.done(data.value))) return { outcome: 'ok' }
      return { outcome: this.deadline.reason?.outcome ?? 'client_closed' }
    } catch (error) {
      // what breaks because the client left, or the time is up, is no failure of the source
      const { reason } = this.deadline
      if (reason !== undefined) return { outcome: reason.outcome }
      await this.error(error)
      return { outcome: outcomeOf(error), error }
    }
  }
}
