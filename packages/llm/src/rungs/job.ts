import { type Duration, parseDuration, refuseUnknownOptions, UpstreamError } from '@timebudget/core'
import { expectFunction, expectMethod } from '../expected.ts'
import { expectName, type Rung, wholeText } from './rung.ts'

/** What of BullMQ's `Queue` is needed. */
export interface JobQueue {
  add(
    name: string,
    data: unknown,
    options: { readonly jobId: string },
  ): Promise<{ readonly id?: string | undefined }>
}

/** How work is put off. */
export interface JobOptions<Input> {
  /** What the worker gets; the input itself. */
  readonly data?: ((input: Input) => unknown) | undefined
  /** Where to ask for the result; `/answers/<id>`. */
  readonly location?: ((id: string) => string) | undefined
  /** What is said meanwhile; nothing. */
  readonly text?: ((input: Input) => string) | undefined
  /** Its name in answers and BullMQ's name of the job; `'job'`. */
  readonly name?: string | undefined
  /** Kept for it by the rungs before it, and the most it takes; `'200ms'`. */
  readonly reserve?: Duration | undefined
}

const optionNames = [
  'data',
  'location',
  'text',
  'name',
  'reserve',
] as const satisfies (keyof JobOptions<unknown>)[]

/**
 * A rung that puts the work off: a durable job for a BullMQ worker, and a place to ask for its result. Without a queue the
 * rung is not there, and says so; nothing is ever kept in memory in its stead.
 *
 *     job(queue, { location: (id) => `/answers/${id}` })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function job<Input>(queue: JobQueue | undefined, options: JobOptions<Input> = {}): Rung<Input> {
  if (queue !== undefined) expectMethod(queue, 'queue', 'add')
  refuseUnknownOptions(options, optionNames)
  const { name = 'job', data = (input: Input): unknown => input } = options
  const { location = (id: string): string => `/answers/${encodeURIComponent(id)}` } = options
  expectName(name)
  expectFunction(data, 'data', '({ question }) => question')
  expectFunction(location, 'location', '(id) => `/answers/${id}`')
  if (options.text !== undefined) expectFunction(options.text, 'text', "() => 'It is being worked on.'")
  const reserve = parseDuration(options.reserve ?? '200ms', 'reserve')
  if (queue === undefined) warnOfAbsence(name)
  return {
    name,
    floor: undefined,
    reserve: queue === undefined ? 0 : reserve,
    timeout: reserve,
    asksModel: false,
    answersAtOnce: false,
    async open(input, { idempotencyKey }) {
      if (queue === undefined) return undefined
      const jobId = idOf(idempotencyKey)
      const added = await queue.add(name, data(input), { jobId }).catch((cause: unknown) => {
        throw new UpstreamError(`${name} could not be put off: ${String(cause)}`, { operation: name, cause })
      })
      const id = added.id ?? jobId
      return {
        attempt: 1,
        events: wholeText(options.text?.(input) ?? ''),
        job: { id, location: location(id) },
      }
    },
  }
}

/** BullMQ takes neither a colon within an id nor a number for one. */
function idOf(key: string): string {
  const id = key.replaceAll('%', '%25').replaceAll(':', '%3A')
  return /^-?\d+$/.test(id) ? `key-${id}` : id
}

function warnOfAbsence(name: string): void {
  process.emitWarning(
    `the rung '${name}' has no queue (BullMQ on Redis) and is left out: work is not put off in memory, where a restart would lose it`,
    'TimeBudgetWarning',
  )
}
