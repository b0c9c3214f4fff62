import type { Dispatcher } from 'undici'

type Headers = Exclude<Dispatcher.DispatchOptions['headers'], undefined>

/** How the stamps of a call are written. */
export interface Stamping {
  /** What is to be written at this moment. */
  readonly stamp: () => Readonly<Record<string, string>>
  /** Lower-case names: what the caller, or an attempt before, wrote under them goes. */
  readonly replaced: ReadonlySet<string>
}

/**
 * The same headers, as a record with the stamps of this moment; undici, which iterates over them only once a connection
 * is free, gets those of that moment. A call that waited in a pool's queue thus carries what is left after the wait.
 */
export function stampedHeaders(headers: Headers | undefined, { stamp, replaced }: Stamping): Headers {
  const pairs = headerPairs(headers)
  if (pairs === undefined) return headers ?? null // undici says what is wrong with them
  const record: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || replaced.has(name.toLowerCase())) continue
    const present = record[name]
    record[name] = present === undefined ? value : [present, value].flat()
  }
  Object.assign(record, stamp())
  // not enumerable, so that interceptors which copy the record get a plain one
  return Object.defineProperty(record, Symbol.iterator, {
    value(): Iterator<[string, string | string[]]> {
      const now: Array<[string, string | string[]]> = []
      for (const pair of Object.entries(record)) if (!replaced.has(pair[0].toLowerCase())) now.push(pair)
      now.push(...Object.entries(stamp()))
      return now.values()
    },
  })
}

type Pairs = Iterable<readonly [string, string | string[] | undefined | null]>

/** undici takes headers as a flat list, as a record or as anything that iterates over pairs. */
function headerPairs(headers: unknown): Pairs | undefined {
  if (headers === undefined || headers === null) return []
  if (typeof headers !== 'object') return undefined
  if (Array.isArray(headers)) return headers.length % 2 === 0 ? pairsOfList(headers) : undefined
  return Symbol.iterator in headers ? (headers as Pairs) : Object.entries(headers)
}

function* pairsOfList(list: readonly (string | Buffer)[]): Generator<[string, string]> {
  for (let index = 0; index < list.length; index += 2) yield [String(list[index]), list[index + 1] as string]
}
