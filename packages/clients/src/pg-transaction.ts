import type { PgClient, PgConnection } from './pg-shapes.ts'

/** What the server says of a connection when it is ready for the next query. */
interface TransactionWatch {
  /** `I` outside a transaction, `T` in one, `E` in one that has failed; undefined before the first answer. */
  status: string | undefined
}

// One for a connection, however often it is taken from its pool.
const watches = new WeakMap<PgConnection, TransactionWatch>()

/** The state of a connection's transaction from now on: pg itself tells it in its newer versions only. */
export function watchTransaction({ connection }: PgClient): Readonly<TransactionWatch> {
  const known = connection === undefined ? undefined : watches.get(connection)
  if (known !== undefined) return known
  const watch: TransactionWatch = { status: undefined }
  if (connection === undefined) return watch
  watches.set(connection, watch)
  // before pg's own listener, which sends the next query
  connection.prependListener('readyForQuery', (message) => {
    watch.status = message?.status
  })
  return watch
}
