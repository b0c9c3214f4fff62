import type { Dispatcher } from 'undici'

type Headers = Exclude<Dispatcher.DispatchOptions['headers'], undefined>

/** How the stamps of a call are written. */
export interface Stamping {
  /** What is to be written at this moment. */
  stamps(): Readonly<Record<string, string>>
  /** Lower-case names: what the caller, or an attempt before, wrote under them goes. */
  readonly replaced: readonly string[]
}

/**
 * The same headers, as a record with the stamps of this moment; undici, which iterates over them only once a connection
 * is free, gets those of that moment. A call that waited in a pool's queue thus carries what is left after the wait.
 */
export function stampedHeaders(headers: Headers | undefined, stamping: Stamping): StampedHeaders | undefined {
  if (headers === undefined || headers === null) return new StampedHeaders([], stamping)
  const pairs = headerPairs(headers)
  return pairs === undefined ? undefined : new StampedHeaders(pairs, stamping)
}

/** Interceptors that copy the record get a plain one, with nothing in it but headers. */
export class StampedHeaders {
  [name: string]: string | string[]
  readonly #stamping: Stamping
  #isFresh = true

  constructor(pairs: Pairs, stamping: Stamping) {
    this.#stamping = stamping
    const { replaced } = stamping
    for (const [name, value] of pairs) {
      if (value === undefined || value === null || replaced.includes(name.toLowerCase())) continue
      const present = this[name]
      this[name] = present === undefined ? value : [present, value].flat()
    }
    const stamps = stamping.stamps()
    for (const name in stamps) this[name] = stamps[name] ?? ''
  }

  /** From now on the stamps must be written anew. */
  static grownOld(headers: StampedHeaders): void {
    headers.#isFresh = false
  }

  [Symbol.iterator](): Iterator<[string, string | string[]]> {
    const written = Object.entries<string | string[]>(this)
    return this.#isFresh ? written.values() : this.#stampedAnew(written).values()
  }

  #stampedAnew(written: [string, string | string[]][]): [string, string | string[]][] {
    const { replaced } = this.#stamping
    const kept = written.filter(([name]) => !replaced.includes(name.toLowerCase()))
    return [...kept, ...Object.entries(this.#stamping.stamps())]
  }
}
// a header may be called `constructor` or `__proto__`
Reflect.deleteProperty(StampedHeaders.prototype, 'constructor')
Object.setPrototypeOf(StampedHeaders.prototype, null)

type Pairs = Iterable<readonly [string, string | string[] | undefined | null]>

/** undici takes headers as a flat list, as a record or as anything that iterates over pairs. */
function headerPairs(headers: unknown): Pairs | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined
  if (Array.isArray(headers)) return headers.length % 2 === 0 ? pairsOfList(headers) : undefined
  return Symbol.iterator in headers ? (headers as Pairs) : Object.entries(headers)
}

function* pairsOfList(list: readonly (string | Buffer)[]): Generator<[string, string]> {
  for (let index = 0; index < list.length; index += 2) yield [String(list[index]), list[index + 1] as string]
}
