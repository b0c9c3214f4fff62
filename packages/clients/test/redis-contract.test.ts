import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { withDeadline } from '@timebudget/clients/redis'
import { type BenchOptions, everyClientContract } from './every-client/contract.ts'
import { redisBench, type RedisTarget, type RedisUser } from './every-client/redis-bench.ts'

function nodeRedis({ host, port, isSecure }: RedisTarget, options: BenchOptions | undefined): RedisUser {
  const socket = { host, port, reconnectStrategy: false as const }
  const client = createClient({ socket: isSecure ? { ...socket, tls: true } : socket })
  const heard: unknown[] = []
  client.on('error', (error) => heard.push(error))
  const db = options === undefined ? client : withDeadline(client, options)
  return {
    heard,
    connect: () => client.connect(),
    async call() {
      if (!client.isOpen) await db.connect()
      return String(await db.get('answer'))
    },
    close() {
      if (client.isOpen) client.destroy()
    },
  }
}

function ioredis({ host, port, isSecure }: RedisTarget, options: BenchOptions | undefined): RedisUser {
  const tls = isSecure ? { tls: {} } : {}
  const client = new Redis({ host, port, ...tls, lazyConnect: true, retryStrategy: () => null })
  const heard: unknown[] = []
  client.on('error', (error) => heard.push(error))
  const db = options === undefined ? client : withDeadline(client, options)
  return {
    heard,
    connect: () => client.connect(),
    call: async () => String(await db.get('answer')),
    close: () => client.disconnect(),
  }
}

for (const { name, open } of [
  { name: 'node-redis', open: nodeRedis },
  { name: 'ioredis', open: ioredis },
]) {
  everyClientContract({
    name,
    operation: 'redis',
    failsWith: "the library's error",
    bench: (behaviour, options, context) =>
      redisBench(
        behaviour,
        { open: (target) => ({ governed: open(target, options), bare: open(target, undefined) }) },
        context,
      ),
    cannot: {
      'its upstream is told what is left': 'Redis has no word for it',
      'however a call ends before its answer does, its upstream knows within 100 ms':
        'Redis carries out what was written',
    },
  })
}
