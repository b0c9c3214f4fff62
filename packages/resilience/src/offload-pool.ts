import { AsyncResource } from 'node:async_hooks'
import { availableParallelism } from 'node:os'
import type { TransferListItem } from 'node:worker_threads'

/** What is used of a pool of worker threads; a `Piscina` is one. */
export interface WorkerPool {
  run(input: unknown, options: WorkerRun): Promise<unknown>
  /** How many tasks wait for a thread. */
  readonly queueSize: number
  readonly threads: readonly unknown[]
  readonly maxThreads: number
}

/** One task of a pool. */
export interface WorkerRun {
  /** Where the task is; the pool's own file by default. */
  readonly filename: string | null
  /** Which export it is. */
  readonly name: string | null
  readonly transferList: TransferListItem[]
  /** Ends the thread when it aborts. */
  readonly signal: AbortSignal
}

// A thread lives longer than the request it is first needed for, and would keep that request's async context.
const outsideRequests = new AsyncResource('timebudget.offload')

let shared: Promise<WorkerPool> | undefined

/**
 * The pool of this process for tasks that come without one: as many threads as there are cores, one of which stays; its
 * idle threads keep no process alive.
 * @throws Error if piscina is not installed.
 */
export function sharedPool(): Promise<WorkerPool> {
  shared ??= outsideRequests.runInAsyncScope(makePool).catch((error: unknown) => {
    shared = undefined
    throw error
  })
  return shared
}

async function makePool(): Promise<WorkerPool> {
  const { Piscina } = await import('piscina').catch((cause: unknown) => {
    throw new Error('offload needs piscina 5, which could not be loaded: npm install piscina', { cause })
  })
  const pool = new Piscina({
    minThreads: 1,
    maxThreads: availableParallelism(),
    // starting a thread takes about 60 ms, keeping one about 9 MB
    idleTimeout: 30_000,
    // else a task that finds no free thread goes to the end of the queue
    stricterFIFO: true,
  })
  // of a thread that dies between two tasks; unheard, it would take the process down
  pool.on('error', (error: unknown) => {
    process.emitWarning(`an idle worker thread failed: ${String(error)}`, 'TimeBudgetWarning')
  })
  return pool
}

/** Runs one task; whoever waits for a thread gets one even if this task's was lost. */
export async function runInPool(pool: WorkerPool, input: unknown, run: WorkerRun): Promise<unknown> {
  try {
    return await outsideRequests.runInAsyncScope(() => pool.run(input, run))
  } catch (error) {
    replaceLostThread(pool, run)
    throw error
  }
}

/**
 * Piscina starts no thread in place of one that was ended while others wait, except up to its `minThreads`; only a new
 * task makes it do so, even one that is taken back at once.
 */
function replaceLostThread(pool: WorkerPool, run: WorkerRun): void {
  if (pool.queueSize === 0 || pool.threads.length >= pool.maxThreads) return
  const controller = new AbortController()
  const { signal } = controller
  outsideRequests
    .runInAsyncScope(() => pool.run(undefined, { ...run, transferList: [], signal }))
    .catch(() => undefined)
  controller.abort()
}
