// One call of each store's client to a server that does not answer, under a deadline of 200 ms: what it ends with, and
// what is left of it on the server. Against the built packages, on any Node; argv: the ports of a PostgreSQL and a Redis.
import { once } from 'node:events'
import { withDeadline as governBullmq } from '@timebudget/clients/bullmq'
import { withDeadline as governPg } from '@timebudget/clients/pg'
import { withDeadline as governRedis } from '@timebudget/clients/redis'
import { Deadline, findTimeBudgetError, runWithDeadline } from '@timebudget/core'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createClient } from 'redis'

const budget = 200
const [pgPort, redisPort] = process.argv.slice(2).map(Number)
const host = '127.0.0.1'
const connection = { host, port: redisPort }

const pool = new pg.Pool({
  host,
  port: pgPort,
  user: 'tester',
  database: 'postgres',
  application_name: 'governed',
})
await pool.query('select 1')
const nodeRedis = await createClient({ socket: connection }).connect()
const ioredis = new Redis(connection)
const queue = new Queue(`on-${process.version}`, { connection })
await Promise.all([ioredis.ping(), queue.waitUntilReady()])
const redisPid = Number(/process_id:(\d+)/.exec(await nodeRedis.info('server'))[1])

const told = { pg: await tell(() => governPg(pool).query('select pg_sleep(30)')) }
told.pg.leftRunning = await leftRunning()
told.pg.isUsable = (await pool.query('select 1 as one')).rows[0].one === 1

process.kill(redisPid, 'SIGSTOP')
try {
  told['node-redis'] = await tell(() => governRedis(nodeRedis).get('key'))
  told.ioredis = await tell(() => governRedis(ioredis).get('key'))
  told["BullMQ's add"] = await tell(() => governBullmq(queue).add('frozen', {}))
} finally {
  process.kill(redisPid, 'SIGCONT')
}
told['node-redis'].isUsable = (await nodeRedis.ping()) === 'PONG'
told.ioredis.isUsable = (await ioredis.ping()) === 'PONG'

// adding to a frozen Redis is carried out once it goes on
await queue.drain()
const deadline = Deadline.after(budget)
await runWithDeadline(deadline, () => governBullmq(queue).add('expired', {}, { attempts: 3 }))
await once(deadline.signal, 'abort')
let runs = 0
const worker = new Worker(
  queue.name,
  governBullmq(async () => (runs += 1)),
  { connection },
)
const [job, failure] = await once(worker, 'failed')
told["BullMQ's worker"] = { ...namesOf(failure), attempts: job.attemptsMade, runs }

process.stdout.write(JSON.stringify(told), () => process.exit(0))

async function tell(call) {
  const deadline = Deadline.after(budget)
  const error = await runWithDeadline(deadline, call).then(
    () => 'it was answered',
    (failure) => failure,
  )
  const [after, entries] = [deadline.elapsed(), deadline.ledger.entries]
  deadline.settle()
  return {
    ...namesOf(error),
    outcome: entries.length === 1 ? entries[0].outcome : entries.length,
    after: Math.round(after),
  }
}

function namesOf(error) {
  return { name: error.name, code: error.code, ours: findTimeBudgetError(error)?.code }
}

/** How long PostgreSQL goes on running the query: asked again until it does not. */
async function leftRunning() {
  const observer = new pg.Client({ host, port: pgPort, user: 'tester', database: 'postgres' })
  await observer.connect()
  const since = performance.now()
  for (;;) {
    const { rows } = await observer.query(
      `select 1 from pg_stat_activity where application_name = 'governed' and state = 'active'`,
    )
    const spent = Math.round(performance.now() - since)
    if (rows.length === 0 || spent > 5_000) {
      await observer.end()
      return spent
    }
  }
}
