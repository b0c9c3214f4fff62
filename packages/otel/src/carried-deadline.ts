import { type Context, createContextKey, type TextMapGetter } from '@opentelemetry/api'
import { Deadline, systemClock } from '@timebudget/core'
import { type CodecName, codecs, decodeDeadline } from '@timebudget/core/wire'

const carried = createContextKey('timebudget: the deadline that the caller sent')

/**
 * The deadline that the caller of the running request sent, for code behind no `deadline()` middleware, which reads the
 * headers itself. Nothing stands under it before `runWithDeadline`; settle it when the work is over.
 *
 *     const deadline = deadlineIn(context.active())
 */
export function deadlineIn(context: Context): Deadline | undefined {
  return context.getValue(carried) as Deadline | undefined
}

/** What deadlines are read by. */
export interface CarriedOptions {
  readonly accept: readonly CodecName[]
  /** Milliseconds; nobody is granted more. */
  readonly max: number
}

interface Reading {
  readonly headers: string
  readonly deadline: Deadline
}

/** Reads the deadlines that callers send, each once. */
export class CarriedDeadlines {
  readonly #options: CarriedOptions
  // what is left is counted from the first reading on, however often and late instrumentations read the same headers
  readonly #readings = new WeakMap<object, Reading>()

  constructor(options: CarriedOptions) {
    this.#options = options
  }

  /** The context with the earlier of the deadline that is in it and the carrier's. */
  extract(context: Context, carrier: unknown, getter: TextMapGetter): Context {
    const held = deadlineIn(context)
    const read = this.#read(carrier, getter)
    if (read === undefined || (held !== undefined && held.remaining() <= read.remaining())) return context
    return context.setValue(carried, read)
  }

  #read(carrier: unknown, getter: TextMapGetter): Deadline | undefined {
    const source: Record<string, string | readonly string[]> = {}
    for (const name of this.#options.accept) {
      const { header } = codecs[name]
      const value = getter.get(carrier, header)
      if (value !== undefined) source[header] = value
    }
    const headers = Object.values(source).join('\n')
    if (headers === '' || typeof carrier !== 'object' || carrier === null) return this.#decode(source)
    const before = this.#readings.get(carrier)
    if (before?.headers === headers) return before.deadline
    const deadline = this.#decode(source)
    if (deadline !== undefined) this.#readings.set(carrier, { headers, deadline })
    return deadline
  }

  #decode(source: Readonly<Record<string, string | readonly string[]>>): Deadline | undefined {
    const { accept, max } = this.#options
    const received = decodeDeadline(source, accept, systemClock.epoch()).deadline
    return received && Deadline.after(Math.max(0, Math.min(received.remaining, max)))
  }
}
