import type { ServerResponse } from 'node:http'
import type { TimeBudgetError } from '../errors.ts'
import { problemOf } from './answer.ts'
import { http2StreamOf, isHttp2 } from './http2.ts'
import type { OriginalMethods } from './response-guard.ts'
import type { ResponseHead } from './response-head.ts'

const http2InternalError = 2
/** The longest end of an event: two line breaks of two characters. */
const tailLength = 4

/** What has been sent of a response that began, as far as its end depends on it. */
export class BegunBody {
  readonly #isEventStream: boolean
  #tail = '\n\n'

  private constructor({ isEventStream }: { readonly isEventStream: boolean }) {
    this.#isEventStream = isEventStream
  }

  /** One that is no stream of events; it keeps nothing, so that one serves all. */
  static readonly plain: BegunBody = new BegunBody({ isEventStream: false })

  /** What begins with these headers. */
  static of(head: ResponseHead): BegunBody {
    if (!isEventStream(head.get('content-type'))) return BegunBody.plain
    // what a compressor writes are no events any more
    const isPlain = (head.get('content-encoding') ?? 'identity') === 'identity'
    return isPlain ? new BegunBody({ isEventStream: true }) : BegunBody.plain
  }

  written(chunk: unknown): void {
    if (!this.#isEventStream) return
    if (typeof chunk === 'string') this.#tail = (this.#tail + chunk).slice(-tailLength)
    else if (chunk instanceof Uint8Array) this.#tail = (this.#tail + latin1Tail(chunk)).slice(-tailLength)
  }

  /**
   * Ends the response so that it cannot look complete: an event stream, where no event is half sent, with an `error`
   * event; anything else with a broken connection.
   */
  cutOff(response: ServerResponse, reason: TimeBudgetError, { end }: OriginalMethods): void {
    if (this.#canSayWhy(response)) {
      const data = { ...problemOf(reason), partial: true }
      Reflect.apply(end, response, [`event: error\ndata: ${JSON.stringify(data)}\n\n`])
      if (!response.req.complete) http2StreamOf(response)?.close()
    } else if (isHttp2(response.req)) {
      // destroy() looks like a clean end there, and CANCEL raises no error at the client
      http2StreamOf(response)?.close(http2InternalError)
    } else {
      response.destroy()
    }
  }

  /** A client that does not read would keep the connection for as long as it likes. */
  #canSayWhy(response: ServerResponse): boolean {
    const isBetweenEvents = /(\n\n|\r\r|\r\n\r\n)$/.test(this.#tail)
    const isClogged = (http2StreamOf(response) ?? response).writableNeedDrain
    return this.#isEventStream && isBetweenEvents && !response.writableEnded && !isClogged
  }
}

function latin1Tail(chunk: Uint8Array): string {
  return Buffer.from(chunk.subarray(-tailLength)).toString('latin1')
}

const eventStream = 'text/event-stream'

/** Looks at one letter first, the `e`, since nearly every response is something else. */
function isEventStream(type: string | undefined): boolean {
  if (type === undefined || (type.charCodeAt(5) | 0x20) !== 0x65) return false
  return type.slice(0, eventStream.length).toLowerCase() === eventStream
}
