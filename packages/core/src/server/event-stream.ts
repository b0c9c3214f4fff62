import type { ServerResponse } from 'node:http'
import type { TimeBudgetError } from '../errors.ts'
import { problemOf } from './answer.ts'
import { isHttp2 } from './client-gone.ts'
import type { OriginalMethods } from './response-guard.ts'

const http2InternalError = 2

/** What has been sent of a response that began, as far as its end depends on it. */
export class BegunBody {
  #isEventStream = false
  #betweenEvents = true

  begin(contentType: string | undefined, response: ServerResponse): void {
    // what a compressor writes are no events any more
    const encoding = response.getHeader('content-encoding') ?? 'identity'
    this.#isEventStream = encoding === 'identity' && contentType?.toLowerCase().startsWith('text/event-stream') === true
  }

  written(chunk: unknown): void {
    if (!this.#isEventStream) return
    const text = typeof chunk === 'string' ? chunk.slice(-4) : chunk instanceof Uint8Array ? tailOf(chunk) : ''
    if (text !== '') this.#betweenEvents = /(\n\n|\r\r|\r\n\r\n)$/.test(text)
  }

  /**
   * Ends the response so that it cannot look complete: an event stream, where no event is half sent, with an `error`
   * event; anything else with a broken connection.
   */
  cutOff(response: ServerResponse, reason: TimeBudgetError, { end }: OriginalMethods): void {
    if (this.#isEventStream && this.#betweenEvents && !response.writableEnded) {
      Reflect.apply(end, response, [`event: error\ndata: ${JSON.stringify(problemOf(reason))}\n\n`])
    } else if (isHttp2(response.req)) {
      // destroy() looks like a clean end there, and CANCEL raises no error at the client
      const { stream } = response as ServerResponse & { readonly stream?: { close(code: number): void } }
      stream?.close(http2InternalError)
    } else {
      response.destroy()
    }
  }
}

function tailOf(chunk: Uint8Array): string {
  return Buffer.from(chunk.subarray(-4)).toString('latin1')
}
