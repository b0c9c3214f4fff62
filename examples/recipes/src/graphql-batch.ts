import { bind } from '@timebudget/core'

/**
 * Gives for each key what one call of `load` found for all keys of a turn of the event loop. Make one for each query:
 * `load` runs under the deadline of whoever makes it, and not under the tighter one of the field that asks first.
 */
export function batch<Key, Value>(
  load: (keys: readonly Key[]) => Promise<readonly Value[]>,
): (key: Key) => Promise<Value | undefined> {
  const loadForAll = bind(load)
  let places = new Map<Key, number>()
  let loading: Promise<readonly Value[]> | undefined

  async function loadNext(): Promise<readonly Value[]> {
    await new Promise(setImmediate)
    const keys = [...places.keys()]
    places = new Map()
    loading = undefined
    return loadForAll(keys)
  }

  return async function loadOne(key) {
    const place = places.get(key) ?? places.size
    places.set(key, place)
    loading ??= loadNext()
    const values = await loading
    return values[place]
  }
}
