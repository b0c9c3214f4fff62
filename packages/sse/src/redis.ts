import { createResumableStreamContext, type ResumableStreamContext } from 'resumable-stream/generic'
import { memoryResume, type MemoryResumeOptions } from './resume/memory.ts'
import { Mirror } from './resume/mirror.ts'
import {
  type IoRedisLike,
  patientRedis,
  type PatientRedis,
  type RedisPublisher,
  type RedisSubscriber,
} from './resume/redis-clients.ts'
import { framesOf } from './resume/remote-frames.ts'
import type { Frame, Recording, ResumeStore, StoredWork } from './resume/store.ts'

export type { IoRedisLike, RedisPublisher, RedisSubscriber }

/** What `redisResume()` takes: two clients, since one that listens can do nothing else, and the limits of `memoryResume()`. */
export interface RedisResumeOptions extends MemoryResumeOptions {
  /** node-redis or ioredis. */
  readonly publisher: RedisPublisher | IoRedisLike
  readonly subscriber: RedisSubscriber | IoRedisLike
  /** What keys and channels begin with; `'timebudget'`. */
  readonly prefix?: string | undefined
}

/**
 * Keeps streams where their work runs, and lets the connections of other processes read and stop them through Redis. A
 * Redis that is away harms no stream: it can only not be taken up from another process. Needs `resumable-stream`.
 * @throws TypeError that names the option which cannot be read.
 */
export function redisResume({
  publisher,
  subscriber,
  prefix = 'timebudget',
  ...limits
}: RedisResumeOptions): ResumeStore {
  const redis = patientRedis(publisher, subscriber)
  const context = createResumableStreamContext({
    waitUntil: null,
    keyPrefix: prefix,
    publisher: redis,
    subscriber: redis,
  })
  return new RedisStore({ redis, context, prefix, local: memoryResume(limits) })
}

interface RedisStoreShape {
  readonly redis: PatientRedis
  readonly context: ResumableStreamContext
  readonly prefix: string
  readonly local: ResumeStore
}

class RedisStore implements ResumeStore {
  readonly grace: number
  readonly #shape: RedisStoreShape

  constructor(shape: RedisStoreShape) {
    this.#shape = shape
    this.grace = shape.local.grace
  }

  open(id: string, work: StoredWork): Recording {
    const { redis, context, local } = this.#shape
    const recording = local.open(id, work)
    if (!recording.isResumable) return recording
    void redis.subscribe(this.#stopChannel(id), () => work.stop())
    const mirror = new Mirror({
      grace: this.grace,
      ended: () => void redis.unsubscribe(this.#stopChannel(id)),
    })
    context
      .createNewResumableStream(id, () => mirror.readable)
      .then(
        // nobody reads it here: the connections of this process read the recording
        (copy) => copy?.cancel(),
        () => {},
      )
    return {
      isResumable: true,
      append(frame) {
        mirror.append(frame)
        return recording.append(frame)
      },
      read: (after) => recording.read(after),
      isWatched: async () => (await recording.isWatched()) || (await this.#isWatchedElsewhere(id)),
    }
  }

  async read(id: string, after: number): Promise<AsyncIterableIterator<Frame> | undefined> {
    const { redis, context, local } = this.#shape
    const here = await local.read(id, after)
    if (here !== undefined) return here
    const key = this.#watchedKey(id)
    const seconds = Math.ceil(this.grace / 1_000) + 2
    const watch = (): void => void redis.set(key, '1', { EX: seconds })
    // before the answer, lest the work ends while it is on its way
    watch()
    const text = (await resumed(context, id)) ?? (await afterPause(() => resumed(context, id)))
    if (text === undefined) return undefined
    const timer = setInterval(watch, (seconds * 1_000) / 3)
    timer.unref()
    return framesOf(text, { after, left: () => clearInterval(timer) })
  }

  async stop(id: string): Promise<boolean> {
    const { redis, local } = this.#shape
    return (await local.stop(id)) || (await redis.publish(this.#stopChannel(id), '1')) > 0
  }

  /** Asked twice: one answer that is lost is not to end work that somebody waits for. */
  async #isWatchedElsewhere(id: string): Promise<boolean> {
    const { redis } = this.#shape
    if ((await redis.get(this.#watchedKey(id))) !== null) return true
    return afterPause(async () => (await redis.get(this.#watchedKey(id))) !== null)
  }

  #stopChannel(id: string): string {
    return `${this.#shape.prefix}:stop:${id}`
  }

  #watchedKey(id: string): string {
    return `${this.#shape.prefix}:watched:${id}`
  }
}

/** Milliseconds between two looks: a stream that has just begun is not in Redis yet. */
const betweenLooks = 300

async function afterPause<T>(look: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, betweenLooks).unref())
  return look()
}

/** A second for the process that has the stream to answer, as resumable-stream waits, and a little more. */
const longestAnswer = 1_500

/** What has been said so far, and what is still to come; `undefined` where nobody answers: the wait has an end of its own. */
function resumed(context: ResumableStreamContext, id: string): Promise<ReadableStream<string> | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), longestAnswer)
    timer.unref()
    context
      .resumeExistingStream(id)
      .then(
        (stream) => resolve(stream ?? undefined),
        () => resolve(undefined),
      )
      .finally(() => clearTimeout(timer))
  })
}
