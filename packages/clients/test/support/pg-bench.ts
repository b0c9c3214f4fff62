import { afterAll, afterEach, type TestContext } from 'vitest'
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg'
import { requireOrSkip } from '../../../../test/support/requirements.ts'
import { findPostgres, type PostgresServer, startPostgres } from './postgres-server.ts'

/** What a test of pg works with: a server for the file, pools and clients that end with the test. */
export interface PgBench {
  readonly server: PostgresServer
  readonly config: ClientConfig
  pool(options?: PoolConfig): Pool
  client(options?: ClientConfig): Promise<Client>
  /** What the server is running for `application_name`, seen from a connection of its own. */
  runningQueries(): Promise<string[]>
}

let starting: Promise<PostgresServer> | undefined
const open: { end(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.end().catch(() => {})))
})
afterAll(async () => {
  const server = await starting
  await server?.stop()
})

/** The bench, started on first use; without PostgreSQL the test is skipped, or fails under CI. */
export async function pgBench(context: TestContext): Promise<PgBench> {
  const bin = requireOrSkip(context, findPostgres(), 'apt-get install postgresql')
  starting ??= startPostgres(bin)
  const server = await starting
  const config = {
    host: '127.0.0.1',
    port: server.port,
    user: 'tester',
    database: 'postgres',
    application_name: 'governed',
  }
  return {
    server,
    config,
    pool(options) {
      const pool = new Pool({ ...config, ...options })
      pool.on('error', () => {})
      open.push(pool)
      return pool
    },
    client,
    async runningQueries() {
      const observer = await client({ application_name: 'observer' })
      const { rows } = await observer.query(
        `select query from pg_stat_activity where application_name = 'governed' and state = 'active'`,
      )
      return rows.map(({ query }) => String(query))
    },
  }
  async function client(options?: ClientConfig): Promise<Client> {
    const made = new Client({ ...config, ...options })
    made.on('error', () => {})
    open.push(made)
    await made.connect()
    return made
  }
}
