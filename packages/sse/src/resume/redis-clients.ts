/** What is asked of a Redis client that publishes: node-redis. */
export interface RedisPublisher {
  publish(channel: string, message: string): Promise<unknown>
  set(key: string, value: string, options?: { EX?: number }): Promise<unknown>
  get(key: string): Promise<unknown>
  incr(key: string): Promise<number>
}

/** What is asked of a Redis client that does nothing but listen: node-redis. */
export interface RedisSubscriber {
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
}

/** An ioredis client, as far as it matters here. */
export interface IoRedisLike {
  defineCommand: unknown
  publish(channel: string, message: string): Promise<unknown>
  set(key: string, value: string, unit: 'EX', seconds: number): Promise<unknown>
  get(key: string): Promise<unknown>
  incr(key: string): Promise<number>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

/** Longer than a Redis that is there takes, in milliseconds: nobody waits for one that is not. */
const patience = 2_000
const longestLife = 86_400

/** Both halves of a Redis that may be away: nothing rejects, and nothing is waited for without end. */
export interface PatientRedis {
  /** To how many subscribers. */
  publish(channel: string, message: string): Promise<number>
  set(key: string, value: string, options?: { EX?: number }): Promise<unknown>
  get(key: string): Promise<string | null>
  incr(key: string): Promise<number>
  subscribe(channel: string, listener: (message: string) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  connect(): Promise<void>
}

/** node-redis or ioredis, in one shape. */
export function patientRedis(
  publisher: RedisPublisher | IoRedisLike,
  subscriber: RedisSubscriber | IoRedisLike,
): PatientRedis {
  const listen = subscriptionsOf(subscriber)
  return {
    connect: async () => {},
    publish: async (channel, message) => Number(await settled(publisher.publish(channel, message), 0)),
    set: (key, value, options) => {
      const seconds = options?.EX ?? longestLife
      const setting = isIoRedis(publisher)
        ? publisher.set(key, value, 'EX', seconds)
        : publisher.set(key, value, { EX: seconds })
      return settled(setting, undefined)
    },
    async get(key) {
      const value = await settled(publisher.get(key), null)
      return typeof value === 'string' ? value : null
    },
    incr: (key) => settled(publisher.incr(key), 0),
    async subscribe(channel, listener) {
      await settled(listen.subscribe(channel, listener), undefined)
    },
    async unsubscribe(channel) {
      await settled(listen.unsubscribe(channel), undefined)
    },
  }
}

function isIoRedis<T extends object>(client: T | IoRedisLike): client is IoRedisLike {
  return 'defineCommand' in client
}

function subscriptionsOf(client: RedisSubscriber | IoRedisLike): RedisSubscriber {
  if (!isIoRedis(client)) return client
  const listeners = new Map<string, (message: string) => void>()
  client.on('message', (channel, message) => listeners.get(channel)?.(message))
  return {
    subscribe(channel, listener) {
      listeners.set(channel, listener)
      return client.subscribe(channel)
    },
    unsubscribe(channel) {
      listeners.delete(channel)
      return client.unsubscribe(channel)
    },
  }
}

function settled<T>(asking: Promise<T>, otherwise: T): Promise<T> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(otherwise), patience)
    timer.unref()
    asking.then(resolve, () => resolve(otherwise)).finally(() => clearTimeout(timer))
  })
}
