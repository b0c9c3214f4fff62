import { Redis } from 'ioredis'
import { FlowProducer, Job, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq'
import { afterEach, describe, expect, test, type TestContext } from 'vitest'
import {
  currentDeadline,
  Deadline,
  findTimeBudgetError,
  operationFinished,
  type OperationFinished,
} from '@timebudget/core'
import { withDeadline } from '@timebudget/clients/bullmq'
import { freePort } from '../../../test/support/free-port.ts'
import { redisProgram, redisServer, startRedis } from '../../../test/support/redis-server.ts'
import { eventually, failureOf, under } from './support/under.ts'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((one) => one.close()))
})

function kept<T extends { close(): Promise<void>; on(event: 'error', listener: () => void): unknown }>(
  one: T,
): T {
  one.on('error', () => {})
  closing.push(one)
  return one
}

let queues = 0
async function bench(context: TestContext) {
  const { port } = await redisServer(context)
  const connection = { host: '127.0.0.1', port }
  const name = `queue-${(queues += 1)}`
  const queue = kept(new Queue(name, { connection }))
  const events = kept(new QueueEvents(name, { connection }))
  await events.waitUntilReady()
  return { connection, name, queue, events }
}

async function failed(events: QueueEvents, job: Job): Promise<unknown> {
  return failureOf(job.waitUntilFinished(events, 10_000))
}

describe('a job', () => {
  test('carries the deadline of the request that added it, beside its data, and runs under it', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    const seen: unknown[] = []
    kept(
      new Worker(
        name,
        withDeadline(async (job: Job, _token, signal) => {
          seen.push(job.data, currentDeadline()?.remaining(), signal?.aborted)
          return currentDeadline()?.expiresAt
        }),
        { connection },
      ),
    )
    await under(5_000, async (deadline) => {
      const job = await withDeadline(queue).add('mail', ['of any type'])
      expect(Reflect.get(job.opts, 'timebudget')).toEqual({ deadline: deadline.expiresAt })
      expect(await job.waitUntilFinished(events, 10_000)).toBe(deadline.expiresAt)
      expect(deadline.ledger.entries).toMatchObject([{ name: 'bullmq', outcome: 'ok' }])
    })
    expect(seen).toEqual([['of any type'], expect.any(Number), false])
    expect(seen[1]).toBeLessThanOrEqual(5_000)
  })

  test('whose time ran out in the queue is dropped before it runs, and not tried again', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    const job = await under(100, () => withDeadline(queue).add('mail', {}, { attempts: 3 }))
    await new Promise((resolve) => setTimeout(resolve, 120))
    let runs = 0
    const finished: OperationFinished[] = []
    const unsubscribe = operationFinished.subscribe((event) => finished.push(event))
    kept(
      new Worker(
        name,
        withDeadline(async () => (runs += 1)),
        { connection },
      ),
    )
    expect(String(await failed(events, job))).toMatch(/deadline|time/i)
    await eventually(async () => (await job.getState()) === 'failed')
    expect(runs).toBe(0)
    expect((await Job.fromId(queue, String(job.id)))?.attemptsMade).toBe(1)
    expect(finished.map(({ entry }) => entry.outcome)).toEqual(['deadline_exceeded'])
    unsubscribe()
  })

  test('that runs is aborted at its deadline, even if it does not listen', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    const reasons: unknown[] = []
    const worker = kept(
      new Worker(
        name,
        withDeadline(async (_job: Job, _token, signal) => {
          signal?.addEventListener('abort', () => reasons.push(signal.reason))
          await new Promise(() => {})
        }),
        { connection },
      ),
    )
    const causes: unknown[] = []
    worker.on('failed', (_job, error) => causes.push(findTimeBudgetError(error)))
    await under(400, async (deadline) => {
      const job = await withDeadline(queue).add('mail', {}, { attempts: 3, backoff: 10 })
      expect(await failed(events, job)).toBeInstanceOf(Error)
      expect(deadline.elapsed()).toBeLessThan(2_000)
      await eventually(async () => (await job.getState()) === 'failed')
    })
    expect(reasons).toMatchObject([{ code: 'DEADLINE_EXCEEDED' }])
    expect(causes).toMatchObject([{ code: 'DEADLINE_EXCEEDED' }])
  })

  test('keeps its deadline when the worker is restarted', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    const job = await under(60_000, () => withDeadline(queue).add('mail', {}, { attempts: 2 }))
    const seen: (number | undefined)[] = []
    const first = new Worker(
      name,
      withDeadline(async () => {
        seen.push(currentDeadline()?.expiresAt)
        throw new Error('try again')
      }),
      { connection },
    )
    await new Promise((resolve) => first.once('failed', resolve))
    await first.close()
    kept(
      new Worker(
        name,
        withDeadline(async () => seen.push(currentDeadline()?.expiresAt)),
        { connection },
      ),
    )
    await job.waitUntilFinished(events, 10_000)
    const { deadline }: { deadline: number } = Reflect.get(job.opts, 'timebudget')
    expect(seen).toEqual([deadline, deadline])
  })

  test('that its own program cancels becomes what its processor makes of it', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    let adding: Promise<Job> | undefined
    const worker = await new Promise<Worker>((resolve) => {
      const processor = withDeadline(async (_job: Job, _token, signal) => {
        resolve(started)
        await new Promise((aborted) => signal?.addEventListener('abort', aborted))
        throw new UnrecoverableError('cleaned up')
      })
      const started = kept(new Worker(name, processor, { connection }))
      adding = under(30_000, () => withDeadline(queue).add('mail', {}, { attempts: 3 }))
    })
    const job = await adding
    if (job === undefined) throw new Error('not added')
    worker.cancelJob(String(job.id), 'no longer wanted')
    expect(await failed(events, job)).toMatchObject({ message: 'cleaned up' })
  })

  test('without a deadline is processed as ever, whoever started the worker', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    const worker = await under(50, async () =>
      kept(
        new Worker(
          name,
          withDeadline(async () => currentDeadline() === undefined),
          { connection },
        ),
      ),
    )
    const job = await withDeadline(queue).add('mail', {})
    expect(await job.waitUntilFinished(events, 10_000)).toBe(true)
    expect(worker.isRunning()).toBe(true)
    expect(Reflect.has(job.opts, 'timebudget')).toBe(false)
  })

  test('with an own timeout that has passed is an ordinary failure, tried again', async (context) => {
    const { connection, name, queue, events } = await bench(context)
    let runs = 0
    const processor = withDeadline(
      async () => {
        runs += 1
        if (runs === 1) await new Promise(() => {})
      },
      { timeout: 100 },
    )
    kept(new Worker(name, processor, { connection }))
    const job = await queue.add('mail', {}, { attempts: 2 })
    await job.waitUntilFinished(events, 10_000)
    expect(runs).toBe(2)
  })

  test('carries it as one of several and as part of a flow, but not when a scheduler repeats it', async (context) => {
    const { connection, name, queue } = await bench(context)
    const flows = kept(new FlowProducer({ connection }))
    await under(5_000, async ({ expiresAt }) => {
      const carried = { deadline: expiresAt }
      const several = await withDeadline(queue).addBulk([
        { name: 'a', data: 1 },
        { name: 'b', data: 2, opts: { priority: 1 } },
      ])
      expect(several.map(({ opts }) => Reflect.get(opts, 'timebudget'))).toEqual([carried, carried])
      const tree = await withDeadline(flows).add({
        name: 'top',
        queueName: name,
        children: [{ name: 'leaf', queueName: name }],
      })
      expect(Reflect.get(tree.job.opts, 'timebudget')).toEqual(carried)
      expect(tree.children?.map(({ job }) => Reflect.get(job.opts, 'timebudget'))).toEqual([carried])
      const repeated = await withDeadline(queue).upsertJobScheduler('again', { every: 100_000 })
      expect(repeated && Reflect.has(repeated.opts, 'timebudget')).toBe(false)
    })
  })
})

describe('adding a job', () => {
  test('fails by the deadline where there is no Redis, and is dropped by the worker if Redis takes it later', async (context) => {
    const program = redisProgram(context)
    const port = await freePort()
    const connection = new Redis({
      host: '127.0.0.1',
      port,
      maxRetriesPerRequest: null,
      retryStrategy: () => 50,
    })
    connection.on('error', () => {})
    const queue = new Queue('late', { connection })
    queue.on('error', () => {})
    await under(250, async (deadline) => {
      expect(await failureOf(withDeadline(queue).add('mail', {}))).toMatchObject({
        code: 'DEADLINE_EXCEEDED',
      })
      expect(deadline.elapsed()).toBeLessThan(1_000)
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'deadline_exceeded' }])
    })
    const server = await startRedis(program, port)
    let runs = 0
    const worker = new Worker(
      'late',
      withDeadline(async () => (runs += 1)),
      { connection: { host: '127.0.0.1', port } },
    )
    worker.on('error', () => {})
    const error = await new Promise((resolve) => worker.once('failed', (_job, failure) => resolve(failure)))
    expect(findTimeBudgetError(error)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(runs).toBe(0)
    await worker.close()
    connection.disconnect()
    await server.stop()
  })
})

test('a job whose deadline cannot be read has none', async () => {
  const processor = withDeadline(async () => currentDeadline())
  for (const deadline of [undefined, null, 'soon', Number.NaN, {}]) {
    expect(
      await processor({ name: 'mail', opts: { timebudget: { deadline } } }, undefined, undefined),
    ).toBeUndefined()
  }
  expect(
    await processor({ name: 'mail', opts: { timebudget: 'soon' } }, undefined, undefined),
  ).toBeUndefined()
  const soon = { timebudget: { deadline: Date.now() + 1_000 } }
  expect(await processor({ name: 'mail', opts: soon }, undefined, undefined)).toBeInstanceOf(Deadline)
})
