import { Readable } from 'node:stream'
import { hasMembers } from './retry-causes.ts'

/** Lets go of an answer that nobody will read, so that its connection closes: a Response, or what has a stream for its body. */
export function discardAnswer(answer: unknown): void {
  if (!hasMembers(answer)) return
  discardStream(answer)
  discardStream(answer['body'])
  discardStream(answer['data'])
}

function discardStream(stream: unknown): void {
  if (stream instanceof ReadableStream) {
    // one that is being read, or was, is its reader's
    stream.cancel().catch(ignore)
  } else if (stream instanceof Readable) {
    // undici's fails when it is destroyed, and nobody else listens
    stream.on('error', ignore)
    stream.destroy()
  }
}

function ignore(): void {}
