import type { RunningOperation } from '@timebudget/core'
import { type ResolvedClientOptions, resolveClientOptions } from './outgoing.ts'
import { ClientCare } from './pg-care.ts'
import { isSubmittable, type PgClient, type PgPool, type PgQueryConfig } from './pg-shapes.ts'
import {
  answer,
  type Callback,
  isBoundedNow,
  overriding,
  runStoreCall,
  splitCallback,
  type StoreOptions,
} from './store-call.ts'

/** What pg was asked for: a connection, or a query with its text. */
export interface PgCall {
  readonly kind: 'connect' | 'query'
  readonly text: string | undefined
}

/** What `withDeadline` takes. */
export type PgOptions = StoreOptions<PgCall>

type Resolved = ResolvedClientOptions<PgCall>

/**
 * A view of the same pool or client whose calls keep the ambient deadline. The server is told how long a query may
 * take (`statement_timeout`, in the same round trip), and a query whose time is up, or whose client has left, is
 * cancelled there; waiting for a connection is bounded too. Cursors and streams pass through.
 *
 *     const db = withDeadline(new Pool(), { floor: '20ms' })
 *     const { rows } = await db.query('select * from docs where id = $1', [id])
 *
 * Calls fail with BudgetTooSmallError before any I/O, OperationTimeoutError, the deadline's reason, or pg's own error.
 * @throws TypeError that names the option which cannot be read.
 */
export function withDeadline<T extends object>(poolOrClient: T, options: PgOptions = {}): T {
  const resolved = resolveClientOptions(options, 'pg')
  const target: Partial<PgPool & PgClient> = poolOrClient
  if (typeof target.query !== 'function' || typeof target.connect !== 'function') {
    throw new TypeError('poolOrClient: expected a Pool or a Client of pg')
  }
  const governed = isPool(target) ? governPool(target, resolved) : governClient(target as PgClient, resolved)
  return governed as unknown as T
}

function isPool(target: object): target is PgPool {
  return 'totalCount' in target
}

function governPool(pool: PgPool, resolved: Resolved): PgPool {
  return overriding(pool, {
    connect(...args: readonly unknown[]): unknown {
      if (!isBoundedNow(resolved)) return Reflect.apply(pool.connect, pool, args)
      const { callback } = splitCallback(args)
      const connected = runStoreCall(resolved, { kind: 'connect', text: undefined }, async (running) =>
        governClient(await checkOut(pool, running), resolved),
      )
      return answer(connected, callback, (client) => [client, client.release])
    },
    query(...args: readonly unknown[]): unknown {
      if (isPassedThrough(args, resolved)) return Reflect.apply(pool.query, pool, args)
      const { config, text, callback } = readQuery(args)
      const answered = runStoreCall(resolved, { kind: 'query', text }, async (running) => {
        const client = await checkOut(pool, running)
        return queryAndRelease(client, config, running)
      })
      return answer(answered, callback)
    },
  })
}

/** A connection that arrives after the end of the wait goes back at once. */
function checkOut(pool: PgPool, running: RunningOperation): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client, release) => {
      if (client === undefined) reject(error)
      else if (!running.isOver()) resolve(client)
      else {
        release()
        reject(running.deadline.reason)
      }
    })
  })
}

async function queryAndRelease(
  client: PgClient,
  config: PgQueryConfig,
  running: RunningOperation,
): Promise<unknown> {
  const care = new ClientCare(client)
  // nobody else listens while the connection is out of the pool
  client.on('error', ignore)
  try {
    const result = await care.query(config, running)
    release()
    return result
  } catch (error) {
    // like the pool itself, which keeps no connection that a query has failed on; a cancelled one is as good as new
    release(running.deadline.reason === undefined ? error : undefined)
    throw error
  }
  function release(error?: unknown): void {
    care.whenClean((problem) => {
      client.removeListener('error', ignore)
      client.release(error ?? problem)
    })
  }
}

function governClient(client: PgClient, resolved: Resolved): PgClient {
  const care = new ClientCare(client)
  const governed = overriding(client, {
    connect(...args: readonly unknown[]): unknown {
      if (!isBoundedNow(resolved)) return Reflect.apply(client.connect, client, args)
      const { callback } = splitCallback(args)
      const connected = runStoreCall(resolved, { kind: 'connect', text: undefined }, async (running) => {
        await care.connect(running)
        return governed
      })
      return answer(connected, callback)
    },
    query(...args: readonly unknown[]): unknown {
      if (isPassedThrough(args, resolved)) return Reflect.apply(client.query, client, args)
      const { config, text, callback } = readQuery(args)
      const answered = care.isCleanUp(text)
        ? care.cleanUp(config)
        : runStoreCall(resolved, { kind: 'query', text }, (running) => care.query(config, running))
      return answer(answered, callback)
    },
    release(error?: unknown): void {
      care.whenClean((problem) => client.release(error ?? problem))
    },
  })
  return governed
}

function isPassedThrough([config]: readonly unknown[], resolved: Resolved): boolean {
  return !isBoundedNow(resolved) || config === undefined || config === null || isSubmittable(config)
}

interface ReadQuery {
  readonly config: PgQueryConfig
  readonly text: string | undefined
  readonly callback: Callback | undefined
}

function readQuery(given: readonly unknown[]): ReadQuery {
  const { args, callback } = splitCallback(given)
  const [query, values] = args
  const config = typeof query === 'string' ? { text: query } : (query as PgQueryConfig)
  return { config: values === undefined ? config : { ...config, values }, text: config.text, callback }
}

function ignore(): void {}
