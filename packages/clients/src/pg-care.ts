import { Deadline, type RunningOperation, startOperation, waitOutTheEdge } from '@timebudget/core'
import { cancelOnServer } from './pg-cancel.ts'
import { type PgClient, type PgQuery, type PgQueryConfig, queryClassOf } from './pg-shapes.ts'
import { limitStatement } from './pg-statement-timeout.ts'
import { watchTransaction } from './pg-transaction.ts'
import { runNotingFailure } from './store-call.ts'

/** Milliseconds that cleaning up after a deadline may take before the connection is given up. */
const cleanUpLimit = 1_000

/** Runs the queries of one connection and leaves it clean: nothing running, no transaction open. */
export class ClientCare {
  readonly #client: PgClient
  readonly #transaction: { readonly status: string | undefined }
  #cancelling: Promise<Error | undefined> | undefined
  #problem: Error | undefined
  /** Whether a query was cut off, so that its transaction may have been left open. */
  #cutOff = false

  constructor(client: PgClient) {
    this.#client = client
    this.#transaction = watchTransaction(client)
  }

  /** What ends a transaction may be said after the deadline as well: else nothing could be left clean. */
  isCleanUp(text: string | undefined): boolean {
    return text !== undefined && /^\s*(?:rollback|abort)\b/i.test(text)
  }

  async cleanUp(config: PgQueryConfig): Promise<unknown> {
    const running = startOperation('pg', { deadline: Deadline.after(cleanUpLimit) })
    return runNotingFailure(running, () => this.query(config, running))
  }

  query(config: PgQueryConfig, running: RunningOperation): Promise<unknown> {
    const client = this.#client
    const Query = queryClassOf(client)
    if (Query === undefined) return Promise.resolve(client.query(config))
    const query = new Query(config)
    if (config.query_timeout !== undefined) query.query_timeout = config.query_timeout
    if (config.rows === undefined) {
      const isAlone = client.pipeline !== true
      limitStatement(query, running.deadline, () => isAlone && this.#transaction.status === 'I')
    }
    return this.#send(query, running)
  }

  #send(query: PgQuery, running: RunningOperation): Promise<unknown> {
    const { signal, deadline } = running
    let isSubmitted = false
    const submit = query.submit.bind(query)
    query.submit = (connection) => {
      // its time ran out behind the queries before it
      if (deadline.reason !== undefined) return deadline.reason
      isSubmitted = true
      return submit(connection)
    }
    const answered = new Promise((resolve, reject) => {
      query.callback = (error, result) => {
        signal.removeEventListener('abort', cutOff)
        if (error === null || error === undefined) resolve(result)
        else if (!isCancelled(error)) reject(error)
        // by us, or by the statement_timeout that we set: what counts is why
        else
          void waitOutTheEdge(running.deadline).then(() => {
            if (deadline.reason !== undefined) this.#cutOff = true
            reject(deadline.reason ?? error)
          })
      }
    })
    const cutOff = (): void => {
      this.#cutOff = true
      // what is on its way beside others cannot be cancelled apart from them
      if (!isSubmitted || this.#client.pipeline === true) return
      this.#cancelling = this.#cancel(answered)
    }
    signal.addEventListener('abort', cutOff, { once: true })
    this.#client.query(query)
    return answered
  }

  async #cancel(answered: Promise<unknown>): Promise<Error | undefined> {
    const before = await this.#cancelling
    const problem = before ?? (await cancelOnServer(this.#client, answered, cleanUpLimit))
    this.#problem ??= problem
    return problem
  }

  /** A client that cannot connect in time is of no use to anybody. */
  connect({ signal }: RunningOperation): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => this.#client.connection?.stream.destroy()
      signal.addEventListener('abort', giveUp, { once: true })
      this.#client.connect((error) => {
        signal.removeEventListener('abort', giveUp)
        if (error === null || error === undefined) resolve()
        else reject(error)
      })
    })
  }

  /** Calls back when nothing runs on the connection any more; with what is wrong with it, if it cannot be used again. */
  whenClean(callback: (problem: Error | undefined) => void): void {
    const tell = (): void => callback(this.#whatIsWrong())
    if (this.#cancelling === undefined) tell()
    else void this.#cancelling.then(tell)
  }

  #whatIsWrong(): Error | undefined {
    if (this.#problem !== undefined || !this.#cutOff) return this.#problem
    const { status } = this.#transaction
    return status === 'T' || status === 'E'
      ? new Error('left in a transaction that ran out of time')
      : undefined
  }
}

/** SQLSTATE query_canceled. */
function isCancelled(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === '57014'
}
