import { UpstreamError } from '@timebudget/core'
import { isFinish, isMadeUpFinish } from './ai-sdk-finish.ts'

/**
 * A stream of parts. What it fails with is told as a part, so that the AI SDK tells of it, and then thrown, so that no loop
 * over the text ends as if all had been said.
 */
export function partStream({
  next,
  leave,
  isStopped,
}: {
  readonly next: () => Promise<IteratorResult<unknown>>
  readonly leave: () => unknown
  /** Whether its user has stopped it. */
  readonly isStopped: () => boolean
}): ReadableStream {
  let failure: { readonly error: unknown } | undefined
  return new ReadableStream(
    {
      async pull(reader) {
        if (failure !== undefined) throw failure.error
        try {
          const { done, value } = await next()
          if (done === true) reader.close()
          else reader.enqueue(value)
        } catch (error) {
          // the AI SDK has a part of its own for a user who stops
          if (isStopped()) throw error
          failure = { error }
          reader.enqueue({ type: 'error', error })
        }
      },
      cancel: async () => void (await leave()),
    },
    { highWaterMark: 0 },
  )
}

/** Parts that can be stopped while they wait for the model. */
export function stoppableParts<T>(
  controller: AbortController,
  parts: () => AsyncGenerator<T>,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = parts()
      return {
        next: () => iterator.next(),
        return() {
          controller.abort()
          return iterator.return(undefined)
        },
      }
    },
  }
}

/** Its parts, of which one must be the finish, and the provider's own. */
export async function* untilFinish<Part>(
  stream: ReadableStream<Part>,
  operation: string,
): AsyncGenerator<Part> {
  let isFinished = false
  for await (const part of stream) {
    if (isMadeUpFinish(part)) break
    isFinished ||= isFinish(part)
    yield part
  }
  if (!isFinished) throw new UpstreamError(`${operation} was interrupted: it ended before its end`)
}
