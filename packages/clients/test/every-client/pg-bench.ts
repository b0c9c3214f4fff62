import type { Pool, PoolConfig } from 'pg'
import type { TestContext } from 'vitest'
import { freePort } from '../../../../test/support/free-port.ts'
import { pgBench, type PgBench } from '../support/pg-bench.ts'
import { type Proxy, proxyTo, type Treatment } from '../support/proxy.ts'
import { eventually } from '../support/under.ts'
import { serveUntrustedPostgres } from '../support/untrusted.ts'
import type { Behaviour, Bench } from './contract.ts'

const queries: Readonly<Partial<Record<Behaviour, string>>> = {
  'is slow': `select pg_sleep(0.15)`,
  'is silent': `select pg_sleep(30)`,
  // the server sends what it has when that is more than 8 KiB
  stalls: `select repeat('x', 20000), case when n > 1 then pg_sleep(30) end from generate_series(1, 2) as n`,
}

const ordinary = `select current_setting('statement_timeout') as told`

const treatments: Readonly<Partial<Record<Behaviour, Treatment>>> = {
  'resets the connection before its answer': 'reset',
  'closes the connection before its answer': 'closed',
  'resets the connection in the middle of its answer': 'begun, then reset',
}

/** A PostgreSQL, a proxy before it, and a pool; the pool's connections are opened as they are needed. */
export async function pgContractBench(
  behaviour: Behaviour,
  govern: (pool: Pool) => Pool,
  context: TestContext,
): Promise<Bench> {
  const bench = await pgBench(context)
  const upstream = await upstreamThat(behaviour, bench)
  const name = `bench ${(benches += 1)}`
  const pool = bench.pool({ ...upstream.config, application_name: name, idleTimeoutMillis: 0 })
  const governed = govern(pool)
  const observer = await bench.client()
  const isRunning = async (): Promise<boolean> => {
    const { rowCount } = await observer.query(
      `select from pg_stat_activity where application_name = $1 and state = 'active'`,
      [name],
    )
    return rowCount !== 0
  }
  const query = queries[behaviour] ?? ordinary
  let told: string | undefined
  const rowsOf = async (db: Pool): Promise<unknown> => {
    const { rows } = await db.query<{ readonly told?: string }>(query)
    told = rows[0]?.told
    return rows
  }
  return {
    call: () => rowsOf(governed),
    bare: () => rowsOf(pool),
    told: () => (told === '0' ? undefined : millisecondsOf(told)),
    traffic: () => upstream.proxy?.traffic ?? 0,
    async nextCall() {
      await upstream.proxy?.nextCall()
      return { abandoned: () => eventually(async () => !(await isRunning())) }
    },
    [Symbol.asyncDispose]: async () => upstream.server?.[Symbol.asyncDispose](),
  }
}

let benches = 0

interface Upstream {
  readonly config: PoolConfig
  readonly proxy?: Proxy
  readonly server?: AsyncDisposable
}

async function upstreamThat(behaviour: Behaviour, { server }: PgBench): Promise<Upstream> {
  switch (behaviour) {
    case 'refuses the connection':
      return { config: { port: await freePort() } }
    case 'has a name that nobody knows':
      return { config: { host: 'nobody.invalid' } }
    case 'has a certificate that nobody vouches for': {
      const untrusted = await serveUntrustedPostgres()
      return { config: { port: untrusted.port, ssl: true }, server: untrusted }
    }
    default: {
      const treatment = treatments[behaviour] ?? 'passed'
      const proxy = await proxyTo(server.port, { treatment, isCall: (bytes) => bytes.includes('select') })
      return { config: { port: proxy.port }, proxy, server: proxy }
    }
  }
}

/** As PostgreSQL writes what it was given in milliseconds: `4990ms`, or `5s`. */
function millisecondsOf(setting: string | undefined): number | undefined {
  const [, count, unit] = /^(\d+)(ms|s)$/.exec(setting ?? '') ?? []
  return count === undefined ? undefined : Number(count) * (unit === 's' ? 1_000 : 1)
}
