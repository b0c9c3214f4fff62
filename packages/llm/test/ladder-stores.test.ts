import { BentoCache, bentostore } from 'bentocache'
import { memoryDriver } from 'bentocache/drivers/memory'
import { Queue, Worker } from 'bullmq'
import { Deadline, UpstreamError } from '@timebudget/core'
import { answerHeaders, cached, job, ladder, model, type Rung, rule, statusOf } from '@timebudget/llm'
import { expect, type TestContext, test } from 'vitest'
import { redisProgram, type RedisServer, startRedis } from '../../../test/support/redis-server.ts'

const down = (): Rung<string> => model('big', () => Promise.reject(new UpstreamError('503')), { attempts: 1 })

/** A queue that fails fast, as one in a request must. */
function queueOn({ port }: RedisServer, name = 'answers'): Queue {
  const connection = {
    port,
    host: '127.0.0.1',
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  }
  const queue = new Queue(name, { connection, skipVersionCheck: true })
  queue.on('error', () => undefined)
  return queue
}

async function redisFor(context: TestContext): Promise<RedisServer> {
  const server = await startRedis(redisProgram(context))
  context.onTestFinished(() => server.stop())
  return server
}

test('work that is put off survives the worker that had begun it', { timeout: 30_000 }, async (context) => {
  const redis = await redisFor(context)
  const queue = queueOn(redis)
  await queue.waitUntilReady()
  const answer = await ladder([down(), job<string>(queue)]).run('Why?', { deadline: Deadline.after('10s') })
  expect(statusOf(answer)).toBe(202)
  expect(answer).toMatchObject({ rung: 'job', degraded: true, complete: true })
  expect(answerHeaders(answer)).toMatchObject({ location: `/answers/${answer.job?.id}` })

  const connection = { port: redis.port, host: '127.0.0.1' }
  const settings = { connection, lockDuration: 500, stalledInterval: 500, skipVersionCheck: true }
  const first = new Worker('answers', () => new Promise(() => undefined), settings)
  await new Promise((resolve) => first.once('active', resolve))
  await first.close(true)

  const second = new Worker('answers', async ({ data }) => `because: ${data}`, settings)
  const result = await new Promise((resolve) => {
    second.once('completed', (done, value) => resolve([done.id, value]))
  })
  expect(result).toEqual([answer.job?.id, 'because: Why?'])
  await second.close()
  await queue.close()
})

test('putting the same question off twice makes one job', { timeout: 30_000 }, async (context) => {
  const queue = queueOn(await redisFor(context))
  await queue.waitUntilReady()
  const answers = ladder([job<string>(queue)])
  const ids = [
    (await answers.run('Why?', { idempotencyKey: 'k1' })).job?.id,
    (await answers.run('Why?', { idempotencyKey: 'k1' })).job?.id,
  ]
  expect(ids).toEqual(['k1', 'k1'])
  expect(await queue.count()).toBe(1)
  await queue.close()
})

test('any idempotency key makes a job', { timeout: 30_000 }, async (context) => {
  const queue = queueOn(await redisFor(context))
  await queue.waitUntilReady()
  const answers = ladder([job<string>(queue)])
  const ids = []
  for (const idempotencyKey of ['order:42', 'order%3A42', '42', '-1'])
    ids.push((await answers.run('Why?', { idempotencyKey })).job?.id)
  expect(new Set(ids).size).toBe(4)
  expect(await queue.count()).toBe(4)
  await queue.close()
})

test('a frozen Redis costs no more than the job’s own time', { timeout: 30_000 }, async (context) => {
  const redis = await redisFor(context)
  const queue = queueOn(redis)
  await queue.waitUntilReady()
  redis.freeze()
  const deadline = Deadline.after('20s')
  const answer = await ladder([down(), job<string>(queue), rule<string>(() => 'sorry')]).run('Why?', {
    deadline,
  })
  expect(answer).toMatchObject({ text: 'sorry', rung: 'rule' })
  expect(answer.attempts.find(({ rung }) => rung === 'job')?.outcome).toBe('operation_timeout')
  expect(answer.timings.total).toBeLessThan(5_000)
  redis.thaw()
  await queue.close()
})

test('a Redis that has gone is a failure that says so', { timeout: 30_000 }, async (context) => {
  const redis = await redisFor(context)
  const queue = queueOn(redis)
  await queue.waitUntilReady()
  const closed = new Promise((resolve) => queue.once('ioredis:close', () => resolve(undefined)))
  await redis.stop()
  await closed
  const answering = ladder([down(), job<string>(queue)]).run('Why?', { deadline: Deadline.after('20s') })
  await expect(answering).rejects.toMatchObject({ message: expect.stringContaining('could not be put off') })
  await queue.close().catch(() => undefined)
})

test('a cache of bentocache’s gives an earlier answer while the model is down', async () => {
  const bento = new BentoCache({
    default: 'answers',
    stores: { answers: bentostore().useL1Layer(memoryDriver({})) },
  })
  let isUp = true
  const big = model<string>(
    'big',
    () => (isUp ? Promise.resolve('because') : Promise.reject(new UpstreamError('503'))),
    { attempts: 1 },
  )
  const answers = ladder([
    big,
    cached<string>(bento, { key: (question) => question }),
    rule<string>(() => 'sorry'),
  ])
  const written = new Promise((resolve) => bento.on('cache:written', resolve))
  expect(await answers.run('Why?')).toMatchObject({ text: 'because', rung: 'big' })
  await written
  isUp = false
  expect(await answers.run('Why?')).toMatchObject({ text: 'because', rung: 'cache', degraded: true })
  expect(await answers.run('How?')).toMatchObject({ text: 'sorry', rung: 'rule' })
  await bento.disconnectAll()
})
