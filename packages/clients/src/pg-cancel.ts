import { Deadline, detach } from '@timebudget/core'
import type { PgClient, PgConnection } from './pg-shapes.ts'

/**
 * Has the server stop what runs on the connection, and waits until it has. Returns what is wrong if it did not within
 * `limit` milliseconds: the connection has been closed then.
 */
export async function cancelOnServer(
  client: PgClient,
  answered: Promise<unknown>,
  limit: number,
): Promise<Error | undefined> {
  const { connection } = client
  if (connection === undefined) return undefined
  const deadline = Deadline.after(limit)
  // the request names the connection, not the query: until it has arrived, the next query must not start there
  connection.stream.pause()
  const isDelivered = await settlesBefore(deadline, requestCancel(client, deadline))
  connection.stream.resume()
  const isOver = isDelivered && (await settlesBefore(deadline, answered))
  deadline.settle()
  if (isOver) return undefined
  client.end(ignore)
  return new Error('the server did not cancel a query in time')
}

/** Settles when the server has closed the connection that brought the request: then it has acted on it. */
function requestCancel(client: PgClient, { signal }: Deadline): Promise<void> {
  const { connection: own, host, port, ssl, sslNegotiation, processID, secretKey } = client
  const Connection = own?.constructor as new (config: object) => PgConnection
  return detach(
    () =>
      new Promise((resolve) => {
        const connection = new Connection({ ssl, sslNegotiation })
        const send = (): void => connection.cancel(processID, secretKey)
        const giveUp = (): void => connection.stream.destroy()
        connection.on('error', ignore)
        connection.once('end', () => {
          signal.removeEventListener('abort', giveUp)
          resolve()
        })
        if (ssl === undefined || ssl === false) connection.once('connect', send)
        else if (sslNegotiation !== 'direct') connection.once('connect', () => connection.requestSsl())
        connection.once('sslconnect', send)
        signal.addEventListener('abort', giveUp, { once: true })
        if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
        else connection.connect(port, host)
      }),
  )
}

function settlesBefore({ signal }: Deadline, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const giveUp = (): void => resolve(false)
    const settled = (): void => {
      signal.removeEventListener('abort', giveUp)
      resolve(!signal.aborted)
    }
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    promise.then(settled, settled)
  })
}

function ignore(): void {}
