import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { Piscina } from 'piscina'
import { expect, test } from 'vitest'
import { offload } from '../src/index.ts'
import { sharedPool } from '../src/offload-pool.ts'

const worker = new URL('./support/offload-worker.mjs', import.meta.url)

/** A pool of its own for a test, with one thread that has started. */
async function startedPool(options: { minThreads: number; maxThreads: number }) {
  const pool = new Piscina({ filename: worker.href, ...options })
  await pool.run(1)
  return {
    pool,
    thread: pool.threads[0] as Worker,
    [Symbol.asyncDispose]: () => pool.destroy(),
  }
}

function newCounter(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4))
}

/** Settles once a worker counts in there. */
async function counting(counter: Int32Array): Promise<void> {
  while (Atomics.load(counter, 0) === 0) await nextTurn()
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

test('a task runs in a worker, by its default export or a named one', async () => {
  await expect(offload<number>(worker, 5)).resolves.toBe(10)
  await expect(offload(worker.href, new ArrayBuffer(8), { name: 'lengthOf' })).resolves.toBe(8)
})

test('the event loop turns while a worker computes', async () => {
  const counter = newCounter()
  const controller = new AbortController()
  const task = offload(worker, counter, { name: 'countForEver', signal: controller.signal })
  await counting(counter)
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  controller.abort()
  await expect(task).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('a worker that never ends by itself is ended at the deadline, and the CPU is free', async () => {
  await using own = await startedPool({ minThreads: 1, maxThreads: 1 })
  const counter = newCounter()
  const exit = once(own.thread, 'exit')
  const deadline = Deadline.after(100)
  const began = performance.now()
  await expect(offload(own.pool, counter, { name: 'countForEver', deadline })).rejects.toMatchObject({
    code: 'DEADLINE_EXCEEDED',
    budget: 100,
  })
  expect(performance.now() - began).toBeLessThan(2_000)
  await exit
  const counted = Atomics.load(counter, 0)
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  expect(Atomics.load(counter, 0)).toBe(counted)
  await expect(offload(own.pool, 5)).resolves.toBe(10)
})

test('a worker is ended at the timeout of its operation, with time left for something else', async () => {
  const deadline = Deadline.after('20s')
  await expect(
    runWithDeadline(deadline, () => offload(worker, newCounter(), { name: 'countForEver', timeout: 50 })),
  ).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT', operation: 'offload' })
  expect(deadline.remaining()).toBeGreaterThan(0)
  expect(deadline.ledger.entries.map(({ name, outcome }) => [name, outcome])).toEqual([
    ['offload', 'operation_timeout'],
  ])
  deadline.settle()
})

test('law 9: a worker is ended when the request it works for is given up', async () => {
  await using own = await startedPool({ minThreads: 1, maxThreads: 1 })
  const counter = newCounter()
  const deadline = Deadline.after('20s')
  const exit = once(own.thread, 'exit')
  const task = runWithDeadline(deadline, () => offload(own.pool, counter, { name: 'countForEver' }))
  await counting(counter)
  deadline.cancel('the client left')
  await expect(task).rejects.toMatchObject({ code: 'CANCELLED' })
  await exit
})

test('law 14: a deadline reaches its worker also after garbage collection', async () => {
  await using own = await startedPool({ minThreads: 1, maxThreads: 1 })
  const counter = newCounter()
  const exit = once(own.thread, 'exit')
  const task = offload(own.pool, counter, { name: 'countForEver', timeout: 300 }).catch(() => 'ended')
  await counting(counter)
  for (let i = 0; i < 5; i += 1) {
    globalThis.gc?.()
    await nextTurn()
  }
  await expect(task).resolves.toBe('ended')
  await exit
})

test.each([
  { minThreads: 0, maxThreads: 1 },
  { minThreads: 1, maxThreads: 1 },
])('tasks that wait behind one that is cut off are done all the same: %j', async (threads) => {
  await using own = await startedPool(threads)
  const endless = offload(own.pool, newCounter(), { name: 'countForEver', timeout: 100 }).catch(
    () => 'cut off',
  )
  const waiting = [3, 4, 5].map((input) => offload(own.pool, input))
  await expect(endless).resolves.toBe('cut off')
  await expect(Promise.all(waiting)).resolves.toEqual([3, 6, 10])
  expect(own.pool.threads.length).toBe(1)
})

test.each([
  { minThreads: 0, maxThreads: 1 },
  { minThreads: 1, maxThreads: 1 },
])('tasks that wait behind one whose thread dies are done all the same: %j', async (threads) => {
  await using own = await startedPool(threads)
  const dying = offload(own.pool, 3, { name: 'leave' })
  const waiting = offload(own.pool, 5)
  await expect(dying).rejects.toThrow('worker exited with code: 3')
  await expect(waiting).resolves.toBe(10)
})

test('law 13: waiting for a thread ends at the deadline, and what did not begin ends nobody else', async () => {
  await using own = await startedPool({ minThreads: 1, maxThreads: 1 })
  const [first, second] = [newCounter(), newCounter()]
  const controller = new AbortController()
  const running = offload(own.pool, first, { name: 'countForEver', signal: controller.signal })
  await counting(first)
  await expect(offload(own.pool, second, { name: 'countForEver', timeout: 50 })).rejects.toMatchObject({
    code: 'OPERATION_TIMEOUT',
  })
  expect(own.pool.queueSize).toBe(0)
  const counted = Atomics.load(first, 0)
  while (Atomics.load(first, 0) === counted) await nextTurn()
  expect(Atomics.load(second, 0)).toBe(0)
  controller.abort()
  await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('a task for which too little time is left reaches no pool', async () => {
  let asked = false
  const pool = { run: async () => (asked = true), queueSize: 0, threads: [], maxThreads: 1 }
  const deadline = Deadline.after(50)
  await expect(offload(pool, 1, { deadline, floor: 100 })).rejects.toMatchObject({ code: 'BUDGET_TOO_SMALL' })
  expect(asked).toBe(false)
})

test('the task that makes a pool replace a lost thread is taken back before it runs', async () => {
  const asked: AbortSignal[] = []
  const pool = {
    async run(_input: unknown, { signal }: { signal: AbortSignal }) {
      asked.push(signal)
      throw new Error('the thread was lost')
    },
    queueSize: 1,
    threads: [],
    maxThreads: 1,
  }
  await expect(offload(pool, 1)).rejects.toThrow('the thread was lost')
  expect(asked.map(({ aborted }) => aborted)).toEqual([false, true])
  await expect(offload({ ...pool, queueSize: 0 }, 1)).rejects.toThrow('the thread was lost')
  expect(asked).toHaveLength(3)
})

test('what a task throws arrives as it was', async () => {
  await expect(offload(worker, 'out of range', { name: 'fail' })).rejects.toThrow(
    new RangeError('out of range'),
  )
})

test('input that cannot be copied is refused by a TypeError that says so', async () => {
  await expect(offload(worker, { callback: () => 1 })).rejects.toThrow(
    /^input: cannot be handed to a worker: .*=> 1/,
  )
})

test('output that cannot be copied is told from input', async () => {
  await expect(offload(worker, 1, { name: 'giveBackFunction' })).rejects.toThrow(
    /^what the worker returned or threw cannot be handed back/,
  )
})

test('what is transferred is handed over, not copied', async () => {
  const buffer = new ArrayBuffer(16)
  await expect(offload(worker, buffer, { name: 'lengthOf', transfer: [buffer] })).resolves.toBe(16)
  expect(buffer.byteLength).toBe(0)
})

test.each(['./relative.js', new URL('https://example.com/worker.js'), 5, null, () => 1])(
  '%s is no task, and is refused by a TypeError that says what one is',
  async (task) => {
    await expect(offload(task as never, 1)).rejects.toThrow(/^task: expected the file URL or absolute path/)
  },
)

test('a thread that dies between two tasks is warned of, and takes nothing down', async () => {
  await offload(worker, 1)
  const pool = await sharedPool()
  const warning = once(process, 'warning')
  if (pool instanceof Piscina) pool.emit('error', new Error('out of memory'))
  expect(String(await warning)).toContain('out of memory')
  await expect(offload(worker, 5)).resolves.toBe(10)
})

test('idle threads keep no process alive', async () => {
  await offload(worker, 1)
  const keepsAlive = (): boolean => process.getActiveResourcesInfo().includes('MessagePort')
  while (keepsAlive()) await nextTurn()
  expect(keepsAlive()).toBe(false)
})

test('a thread keeps nothing of the request it was first needed for', async () => {
  await using own = await startedPool({ minThreads: 1, maxThreads: 2 })
  const storage = new AsyncLocalStorage<object>()
  const inARequest = async (): Promise<WeakRef<object>> => {
    const request = {}
    await storage.run(request, async () => {
      const blocking = new AbortController()
      const counter = newCounter()
      const endless = offload(own.pool, counter, { name: 'countForEver', signal: blocking.signal })
      // needs a second thread
      await offload(own.pool, 1)
      blocking.abort()
      await endless.catch(() => undefined)
    })
    return new WeakRef(request)
  }
  const request = await inARequest()
  for (let i = 0; i < 20 && request.deref() !== undefined; i += 1) {
    await nextTurn()
    globalThis.gc?.()
  }
  expect(request.deref()).toBeUndefined()
})
