import { DirectSink } from './direct-sink.ts'
import { EventStream } from './event-stream.ts'
import { resolveResume, resolveStreamOptions, type StreamOptions } from './options.ts'
import { ResumableSink } from './resume/resumable-sink.ts'
import { type StreamTarget, takeOver } from './target.ts'

/**
 * Answers a request with a stream of events that keeps to the request's deadline: signs of life while nothing comes, an
 * `error` event when the time is up, and nothing left running when the client leaves. Express, Koa, Fastify, `node:http`.
 *
 *     const stream = sse(response)
 *     await stream.pipe(({ signal }) => tokensOf(question, signal))
 *
 * @throws TypeError that names the option which cannot be read; Error if the response has begun already.
 */
export function sse<Events extends object = Record<string, unknown>>(
  target: StreamTarget,
  options: StreamOptions = {},
): EventStream<Events> {
  const resolved = resolveStreamOptions(options)
  const response = takeOver(target)
  const sink =
    options.resume === undefined
      ? new DirectSink(response, resolved)
      : new ResumableSink(response, resolveResume(options.resume), resolved)
  return new EventStream<Events>(sink)
}
