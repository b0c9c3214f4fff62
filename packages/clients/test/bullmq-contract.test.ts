import { Redis } from 'ioredis'
import { Queue } from 'bullmq'
import { withDeadline } from '@timebudget/clients/bullmq'
import { type BenchOptions, everyClientContract } from './every-client/contract.ts'
import { redisBench, type RedisTarget, type RedisUser } from './every-client/redis-bench.ts'

let told: number | undefined

function queue({ host, port, isSecure }: RedisTarget, options: BenchOptions | undefined): RedisUser {
  const tls = isSecure ? { tls: {} } : {}
  const connection = new Redis({ host, port, ...tls, lazyConnect: true, retryStrategy: () => null })
  const heard: unknown[] = []
  connection.on('error', (error) => heard.push(error))
  let made: Queue | undefined
  const open = (): Queue => {
    made ??= new Queue('jobs', { connection }).on('error', () => {})
    return made
  }
  return {
    heard,
    // the first job has the queue's scripts loaded
    connect: () => open().add('first', {}),
    async call() {
      const jobs = options === undefined ? open() : withDeadline(open(), options)
      const { name, opts } = await jobs.add('answer', {})
      const carried: { readonly deadline?: number } = Object(Reflect.get(opts, 'timebudget'))
      told = carried.deadline === undefined ? undefined : carried.deadline - Date.now()
      return name
    },
    close: () => connection.disconnect(),
  }
}

everyClientContract({
  name: 'adding a job to a queue of BullMQ',
  operation: 'bullmq',
  failsWith: "the library's error",
  bench: (behaviour, options, context) =>
    redisBench(
      behaviour,
      {
        open: (target) => ({ governed: queue(target, options), bare: queue(target, undefined) }),
        told: () => told,
      },
      context,
    ),
  cannot: {
    'however a call ends before its answer does, its upstream knows within 100 ms':
      'Redis carries out what was written; the worker drops the job',
  },
})
