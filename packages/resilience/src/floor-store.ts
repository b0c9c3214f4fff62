import { LRUCache } from 'lru-cache'

/** Where the replicas of a service share what their floors have learned. */
export interface FloorStore {
  get(key: string): Promise<string | null | undefined>
  /** Keeps the value for that many milliseconds. */
  set(key: string, value: string, ttl: number): Promise<unknown>
}

/** What we use of a client of node-redis. */
export interface NodeRedisClient {
  get(key: string): Promise<unknown>
  set(key: string, value: string, options: { readonly PX: number }): Promise<unknown>
}

/** What we use of a client of ioredis. */
export interface IoredisClient {
  get(key: string): Promise<unknown>
  call(command: string, ...args: (string | number)[]): Promise<unknown>
}

/**
 * A store in the Redis of a node-redis or ioredis client.
 * @throws TypeError if it is neither.
 */
export function redisStore(client: NodeRedisClient | IoredisClient): FloorStore {
  if (typeof client !== 'object' || client === null || !('get' in client))
    throw new TypeError('client: expected a client of node-redis or ioredis')
  return {
    async get(key) {
      const value = await client.get(key)
      return typeof value === 'string' ? value : undefined
    },
    async set(key, value, ttl) {
      if ('call' in client) return client.call('SET', key, value, 'PX', ttl)
      return client.set(key, value, { PX: ttl })
    },
  }
}

/** A store in this process's memory, for tests and for floors of one process that learn from each other. */
export function memoryStore(): FloorStore {
  const values = new LRUCache<string, string>({ max: 1000 })
  return {
    get: async (key) => values.get(key),
    set: async (key, value, ttl) => values.set(key, value, { ttl }),
  }
}
