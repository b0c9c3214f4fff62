import { isAbsolute } from 'node:path'
import type { TransferListItem } from 'node:worker_threads'
import { operation, type OperationOptions } from '@timebudget/core'
import { runInPool, sharedPool, type WorkerPool } from './offload-pool.ts'

/** A worker's file, as a URL or an absolute path; or a pool, such as a `Piscina`, that knows its own. */
export type OffloadTask = URL | string | WorkerPool

/** What one task in a worker may take. */
export interface OffloadOptions extends OperationOptions {
  /** The operation's name in the ledger; `'offload'`. */
  readonly operation?: string | undefined
  /** Which export of the worker's file is called; `'default'`. */
  readonly name?: string | undefined
  /** What of the input is handed over rather than copied, such as an ArrayBuffer. */
  readonly transfer?: readonly TransferListItem[] | undefined
}

/**
 * Runs CPU-bound work in a worker thread, which is ended with it at the deadline or when the client leaves. Needs
 * piscina 5.
 *
 *     const hash = await offload(new URL('./hash.js', import.meta.url), password, { timeout: '2s' })
 *
 * @throws TypeError if the task is none or the input cannot be handed over; whatever `operation()` throws; what the
 *   task throws.
 */
export async function offload<Output = unknown>(
  task: OffloadTask,
  input: unknown,
  options: OffloadOptions = {},
): Promise<Output> {
  const { operation: operationName = 'offload', name = null, transfer = [], ...limits } = options
  const { pool, filename } = placeOf(task)
  const transferList = [...transfer]
  const output = await operation(operationName, limits, async ({ signal }) => {
    const workers = pool ?? (await sharedPool())
    try {
      return await runInPool(workers, input, { filename, name, transferList, signal })
    } catch (error) {
      throw explain(error, input)
    }
  })
  // the caller says what the worker returns, as with JSON.parse
  return output as Output
}

function placeOf(task: OffloadTask): { readonly pool?: WorkerPool; readonly filename: string | null } {
  if (task instanceof URL && task.protocol === 'file:') return { filename: task.href }
  if (typeof task === 'string' && (task.startsWith('file:') || isAbsolute(task))) return { filename: task }
  if (typeof task === 'object' && task !== null && 'run' in task) return { pool: task, filename: null }
  throw new TypeError(
    `task: expected the file URL or absolute path of a worker, or a pool, got ${JSON.stringify(task) ?? typeof task}`,
  )
}

/** What a failure to hand something from thread to thread means; any other as it is. */
function explain(error: unknown, input: unknown): unknown {
  const failure = cloneFailureIn(error)
  if (failure === undefined) return error
  return isCloneable(input)
    ? new TypeError(`what the worker returned or threw cannot be handed back${failure}`, { cause: error })
    : new TypeError(`input: cannot be handed to a worker${failure}`, { cause: error })
}

/**
 * What a DataCloneError says. One of the worker's is copied itself on its way: from Node 22 on only its stack is left of
 * it, and on Node 20 nothing.
 */
function cloneFailureIn(error: unknown): string | undefined {
  if (error instanceof Error) return /^DataCloneError(: .*)/.exec(error.stack ?? '')?.[1]
  return typeof error === 'object' && error !== null && Object.keys(error).length === 0 ? '' : undefined
}

function isCloneable(input: unknown): boolean {
  try {
    structuredClone(input)
    return true
  } catch {
    return false
  }
}
