import { currentDeadline, Deadline, detach, type RunningOperation, runWithDeadline } from '@timebudget/core'
import { isBounded, type ResolvedClientOptions, resolveClientOptions, startCall } from './outgoing.ts'
import { isBoundedNow, overriding, runStoreCall, type StoreOptions } from './store-call.ts'

/** The job that is added or processed. */
export interface BullmqCall {
  readonly kind: 'add' | 'process'
  /** The job's name; the first one's if several are added at once. */
  readonly name: string
}

/** What `withDeadline` takes. */
export type BullmqOptions = StoreOptions<BullmqCall>

/** What of a job is read. */
export interface DeadlineJob {
  readonly name: string
  readonly opts: object
}

/** BullMQ's processor, which gets a signal to stop by. */
export type DeadlineProcessor<Job extends DeadlineJob, Result> = (
  job: Job,
  token: string | undefined,
  signal: AbortSignal | undefined,
) => Promise<Result>

type Resolved = ResolvedClientOptions<BullmqCall>

/**
 * A processor under the deadline that its job was added with: a job whose time is up is dropped before it runs, one
 * that runs is aborted then, through the processor's signal, and neither is tried again.
 *
 *     new Worker('mail', withDeadline(async (job, token, signal) => send(job.data, { signal })), { connection })
 */
export function withDeadline<Job extends DeadlineJob, Result>(
  processor: DeadlineProcessor<Job, Result>,
  options?: BullmqOptions,
): DeadlineProcessor<Job, Result>
/**
 * A view of the same Queue or FlowProducer whose jobs carry the ambient deadline on to their worker. Adding fails by
 * the deadline where Redis cannot be reached.
 *
 *     await withDeadline(queue).add('mail', { to })
 *
 * `add` fails with BudgetTooSmallError, OperationTimeoutError, the deadline's reason, or BullMQ's own error.
 * @throws TypeError that names the option which cannot be read.
 */
export function withDeadline<T extends object>(queue: T, options?: BullmqOptions): T
export function withDeadline(target: object, options: BullmqOptions = {}): object {
  const resolved = resolveClientOptions(options, 'bullmq')
  if (typeof target === 'function')
    return governProcessor(target as DeadlineProcessor<DeadlineJob, unknown>, resolved)
  if (!('add' in target))
    throw new TypeError('queue: expected a Queue or FlowProducer of BullMQ, or a processor')
  return governQueue(target as JobAdder, resolved)
}

interface JobAdder {
  add(...args: readonly unknown[]): Promise<unknown>
  addBulk(...args: readonly unknown[]): Promise<unknown>
}

/** A job, or a tree of them, as it is added. */
interface NewJob {
  readonly name: string
  readonly opts?: object
  readonly children?: readonly NewJob[]
}

function governQueue(queue: JobAdder, resolved: Resolved): JobAdder {
  return overriding(queue, {
    async add(...args: readonly unknown[]): Promise<unknown> {
      if (!isBoundedNow(resolved)) return queue.add(...args)
      const deadline = currentDeadline()
      const [first, second, third] = args
      if (typeof first === 'string') {
        const { opts } = carrying({ name: first, opts: Object(third ?? {}) }, deadline)
        return runStoreCall(resolved, { kind: 'add', name: first }, () => queue.add(first, second, opts))
      }
      const flow = carrying(first as NewJob, deadline)
      return runStoreCall(resolved, { kind: 'add', name: flow.name }, () => queue.add(flow, ...args.slice(1)))
    },
    async addBulk(...[given, ...rest]: readonly unknown[]): Promise<unknown> {
      if (!isBoundedNow(resolved) || !Array.isArray(given)) return queue.addBulk(given, ...rest)
      const deadline = currentDeadline()
      const jobs = given.map((job: NewJob) => carrying(job, deadline))
      const name = jobs[0]?.name ?? ''
      return runStoreCall(resolved, { kind: 'add', name }, () => queue.addBulk(jobs, ...rest))
    },
  })
}

/**
 * The job with its deadline among its options, where BullMQ keeps what is not the user's: its data may be of any type,
 * and be checked for what does not belong there.
 */
function carrying(job: NewJob, deadline: Deadline | undefined): NewJob {
  if (deadline === undefined || deadline.remaining() === Infinity) return job
  const children = job.children?.map((child) => carrying(child, deadline))
  return {
    ...job,
    opts: { ...job.opts, [optionKey]: { deadline: Math.floor(deadline.expiresAt) } },
    ...(children === undefined ? {} : { children }),
  }
}

const optionKey = 'timebudget'

function deadlineOf({ opts }: DeadlineJob): Deadline | undefined {
  const carried: { deadline?: unknown } = Object(Reflect.get(opts, optionKey))
  return typeof carried.deadline === 'number' && Number.isFinite(carried.deadline)
    ? Deadline.at(carried.deadline)
    : undefined
}

function governProcessor<Job extends DeadlineJob, Result>(
  processor: DeadlineProcessor<Job, Result>,
  resolved: Resolved,
): DeadlineProcessor<Job, Result> {
  // three parameters: BullMQ counts them to tell whether a signal is wanted
  return function processUnderDeadline(job, token, signal) {
    const deadline = deadlineOf(job)
    // not under the deadline of whoever started the worker
    return detach(async () => {
      if (!isBounded({ deadline }, resolved)) return processor(job, token, signal)
      try {
        return await run(beginJob(job, deadline, { signal, resolved }), signal, (scope) =>
          processor(job, token, scope.signal),
        )
      } catch (error) {
        throw deadline?.expired === true && !(error instanceof FinalJobError)
          ? new FinalJobError(error)
          : error
      } finally {
        deadline?.settle()
      }
    })
  }
}

function beginJob(
  { name }: DeadlineJob,
  deadline: Deadline | undefined,
  { signal, resolved }: { readonly signal: AbortSignal | undefined; readonly resolved: Resolved },
): RunningOperation {
  try {
    return startCall(resolved, { kind: 'process', name }, { deadline, signal })
  } catch (error) {
    // less than the floor is left, or there is no deadline where there must be: neither will change
    throw new FinalJobError(error)
  }
}

async function run<Result>(
  running: RunningOperation,
  signal: AbortSignal | undefined,
  work: (scope: RunningOperation) => Promise<Result>,
): Promise<Result> {
  let working: Promise<Result> | undefined
  try {
    return await running.run(() => {
      working = runWithDeadline(running.deadline, async () => work(running))
      return working
    })
  } catch (error) {
    // a job that `worker.cancelJob` cancels becomes what its processor makes of that, as ever
    if (signal?.aborted === true && working !== undefined && running.deadline.reason?.code === 'CANCELLED')
      return working
    throw error
  }
}

/** BullMQ tries a job again unless an error of this name says not to. */
class FinalJobError extends Error {
  override readonly name = 'UnrecoverableError'

  constructor(reason: unknown) {
    super(reason instanceof Error ? reason.message : String(reason), { cause: reason })
  }
}
