import type { Readable } from 'node:stream'

/** What a stream may come as. */
export type StreamSource<T> = AsyncIterable<T> | ReadableStream<T> | Readable

/** A stream that can be read and given up. */
export interface OpenSource<T> {
  next(): Promise<IteratorResult<T, unknown>>
  /** Stops it, as far as its kind allows; does not wait, and does not throw. */
  stop(): void
}

/**
 * Begins to read a stream.
 * @throws TypeError if it is none.
 */
export function openSource<T>(source: StreamSource<T>): OpenSource<T> {
  assertSource(source)
  if (source instanceof ReadableStream) return openWebStream(source)
  const iterator = (source as AsyncIterable<T>)[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    stop() {
      // a stream of Node's that waits for data would end only with them
      if ('destroy' in source && typeof source.destroy === 'function') source.destroy()
      else swallow(() => iterator.return?.())
    },
  }
}

/** @throws TypeError if it is no stream. */
export function assertSource<T>(source: StreamSource<T>): void {
  if (source instanceof ReadableStream) return
  if (typeof source !== 'object' || source === null || !(Symbol.asyncIterator in source))
    throw new TypeError('source: expected an AsyncIterable, a ReadableStream or a Readable')
}

function openWebStream<T>(source: ReadableStream<T>): OpenSource<T> {
  const reader = source.getReader()
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done: true, value: undefined } : { done: false, value }
    },
    stop: () => swallow(() => reader.cancel()),
  }
}

function swallow(stop: () => Promise<unknown> | undefined): void {
  try {
    stop()?.catch(ignore)
  } catch {
    // it is given up anyhow
  }
}

function ignore(): void {}
