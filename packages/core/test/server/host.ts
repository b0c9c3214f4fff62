import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type Deadline,
  type HeaderMalformed,
  headerMalformed,
  type RequestFinished,
  requestFinished,
  type RequestStarted,
  requestStarted,
  type WorkLate,
  workLate,
} from '@timebudget/core'
import type { ServerOptions } from '@timebudget/core/server'

/** One request as a handler of any framework sees it. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** As the framework hands it out: `req.deadline`, `ctx.deadline`, ... */
  readonly deadline: Deadline
}

/** What answers: a string is sent in the framework's own way, `undefined` means that it writes to the response itself. */
export type Handler = (exchange: Exchange) => unknown

/** An application of one handler under one deadline. */
export interface App {
  readonly handler: Handler
  readonly options?: ServerOptions | undefined
  /** A second, inner `deadline()`. */
  readonly inner?: ServerOptions | undefined
  /** Whether the framework's own parser reads JSON bodies first. */
  readonly parsesJson?: boolean | undefined
  /** Whether the handler writes to the response itself, past the framework. */
  readonly isRaw?: boolean | undefined
}

/** A server that listens. */
export interface Listening {
  readonly port: number
  close(): Promise<void>
}

/** A framework, or Node alone, under the contract. */
export interface Host {
  readonly name: string
  readonly protocol: 'http/1.1' | 'h2'
  /** `false` where errors of ours are answered by the framework's own error handler, unless the user has set another. */
  readonly answersErrors?: boolean
  listen(app: App): Promise<Listening>
}

/** Things in the order they came, and a way to wait for more of them. */
export class Arrivals<T> {
  readonly all: T[] = []
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []

  add(item: T): void {
    this.all.push(item)
    for (const { count, resolve } of this.#waiting) if (this.all.length >= count) resolve()
    this.#waiting = this.#waiting.filter(({ count }) => this.all.length < count)
  }

  /** The `count`th of them, once it is there. */
  async nth(count: number): Promise<T> {
    if (this.all.length < count) {
      await new Promise<void>((resolve) => {
        this.#waiting.push({ count, resolve })
      })
    }
    const item = this.all[count - 1]
    if (item === undefined) throw new Error(`there is no number ${count}`)
    return item
  }
}

/** A server under test and what was published while it ran. */
export interface Served extends Host {
  readonly port: number
  readonly started: Arrivals<RequestStarted>
  readonly finished: Arrivals<RequestFinished>
  readonly late: Arrivals<WorkLate>
  readonly malformed: Arrivals<HeaderMalformed>
  /** The exchanges for which the handler was entered. */
  readonly entered: Arrivals<Exchange>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a server; what the events tell of earlier ones is left out. */
export async function serve(host: Host, app: App): Promise<Served> {
  const started = new Arrivals<RequestStarted>()
  const finished = new Arrivals<RequestFinished>()
  const late = new Arrivals<WorkLate>()
  const malformed = new Arrivals<HeaderMalformed>()
  const entered = new Arrivals<Exchange>()
  const own = new WeakSet<object>()
  const stop = [
    requestStarted.subscribe((event) => {
      own.add(event.request)
      started.add(event)
    }),
    requestFinished.subscribe((event) => {
      if (own.has(event.request)) finished.add(event)
    }),
    workLate.subscribe((event) => late.add(event)),
    headerMalformed.subscribe((event) => malformed.add(event)),
  ]
  const listening = await host.listen({
    ...app,
    handler: (exchange) => {
      entered.add(exchange)
      return app.handler(exchange)
    },
  })
  return {
    ...host,
    port: listening.port,
    started,
    finished,
    late,
    malformed,
    entered,
    async [Symbol.asyncDispose]() {
      await listening.close()
      for (const unsubscribe of stop) unsubscribe()
    },
  }
}
