import { Readable } from 'node:stream'
import { hasMembers, lookAt } from './retry-causes.ts'

/** More than any message of failure: to read on would cost more than a new connection. */
const mostBytes = 65_536

/** Lets go of an answer that nobody will read, a Response or whatever has a stream for its body: its connection closes. */
export function discardAnswer(answer: unknown): void {
  drainAnswer(answer)()
}

/**
 * Reads the rest of an answer that nobody else will, so that its connection can serve the next attempt; the returned
 * function ends that, and closes the connection if it was not done.
 */
export function drainAnswer(answer: unknown): () => void {
  const parts = hasMembers(answer) ? lookAt(() => [answer, answer['body'], answer['data']], []) : []
  const stops = parts.map(drainStream)
  return function stopDraining(): void {
    for (const stop of stops) stop?.()
  }
}

function drainStream(stream: unknown): (() => void) | undefined {
  // one that somebody reads is theirs
  if (stream instanceof ReadableStream && !stream.locked) return drainWebStream(stream)
  return stream instanceof Readable ? drainNodeStream(stream) : undefined
}

function drainWebStream(stream: ReadableStream<unknown>): () => void {
  const reader = stream.getReader()
  const stop = (): void => void reader.cancel().catch(ignore)
  const readOn = async (): Promise<void> => {
    let bytes = 0
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      bytes += read.value instanceof Uint8Array ? read.value.byteLength : 1
      if (bytes > mostBytes) return stop()
    }
  }
  readOn().catch(ignore)
  return stop
}

function drainNodeStream(stream: Readable): () => void {
  let bytes = 0
  // undici's fails when it is destroyed, and nobody else listens
  stream.on('error', ignore).on('data', (chunk: unknown) => {
    bytes += chunk instanceof Uint8Array ? chunk.byteLength : 1
    if (bytes > mostBytes) stream.destroy()
  })
  return () => void stream.destroy()
}

function ignore(): void {}
