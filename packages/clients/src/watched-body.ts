import type { Outcome, RunningOperation } from '@timebudget/core'
import { failureOf } from './failure.ts'
import { canBeKept, keepResponse } from './kept-response.ts'

type Controller = ReadableByteStreamController | ReadableStreamDefaultController<Uint8Array>
type ToFailure = (running: RunningOperation, error: unknown) => Promise<unknown>

/** How much of an error's body is read ahead: many who throw for a status leave it unread. */
const errorReadAhead = 65_536

interface Watching {
  readonly outcome: Outcome
  readonly redirected: boolean
  readonly toFailure: ToFailure
}

/**
 * The same response with a body that the operation lasts as long as: it ends with the last chunk, with `cancel`, or by
 * the deadline, which cuts the body off even where the implementation of fetch forgets its signal after the headers.
 * An error's body of up to 64 KiB is read ahead, so that one that nobody reads holds neither operation nor connection.
 */
export function watchBody(response: Response, running: RunningOperation, how: Watching): Response {
  if (response.body === null) {
    const reason = running.end(how.outcome)
    if (reason !== undefined) throw reason
    return how.redirected ? disguise(response, response, how) : response
  }
  if (response.ok && canBeKept(response)) {
    const streamed = (body: ReadableStream<Uint8Array>): Response => withStream(response, body, running, how)
    return keepResponse(response, response.body, { ...how, running, streamed })
  }
  return withStream(response, response.body, running, how)
}

function withStream(
  response: Response,
  source: ReadableStream<Uint8Array>,
  running: RunningOperation,
  how: Watching,
): Response {
  const readAhead = response.ok ? 0 : errorReadAhead
  const body = watchedStream(source, running, how.outcome, { toFailure: how.toFailure, readAhead })
  const OfSameKind = response.constructor as typeof Response // undici's own, where its fetch was wrapped
  return disguise(new OfSameKind(body, { headers: response.headers }), response, how)
}

/** What a watched stream does in its own way. */
export interface WatchOptions {
  /** Says what a reader gets for the source's error or for the reason of the cut. */
  readonly toFailure?: ToFailure
  /** Bytes that are read before anybody asks for them; none. */
  readonly readAhead?: number
}

/** The same stream, which the operation lasts as long as. */
export function watchedStream(
  source: ReadableStream<Uint8Array>,
  running: RunningOperation,
  outcome: Outcome,
  { toFailure = failureOf, readAhead = 0 }: WatchOptions = {},
): ReadableStream<Uint8Array> {
  const isOfBytes = canReadByob(source)
  const reader = source.getReader()
  const watched = {
    start(controller: Controller): void {
      running.onCutOff((reason) => {
        void toFailure(running, reason).then((failure) => controller.error(failure))
        reader.cancel(reason).catch(ignore)
      })
    },
    async pull(controller: Controller): Promise<void> {
      try {
        const chunk = await readSome(reader)
        if (chunk !== undefined) return controller.enqueue(chunk)
        const reason = running.end(outcome)
        if (reason !== undefined) throw reason
        controller.close()
        if ('byobRequest' in controller) controller.byobRequest?.respond(0)
      } catch (error) {
        throw await toFailure(running, error)
      }
    },
    async cancel(reason: unknown): Promise<void> {
      running.end('cancelled')
      await reader.cancel(reason)
    },
  }
  return isOfBytes
    ? new ReadableStream({ type: 'bytes', ...watched }, { highWaterMark: readAhead })
    : new ReadableStream<Uint8Array>(watched, { highWaterMark: readAhead, size: sizeOf })
}

/** Chunks of a byte stream are taken from whoever made them: those of any other stream may be in use elsewhere. */
function canReadByob(source: ReadableStream<Uint8Array>): boolean {
  try {
    source.getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}

/** The next chunk that holds anything, since a byte stream accepts no others; `undefined` at the end. */
async function readSome(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return undefined
    if (value.byteLength !== 0) return value as Uint8Array<ArrayBuffer>
  }
}

/** Gives a response what its constructor cannot, or would refuse: where it came from, and a status such as 999. */
function disguise(
  response: Response,
  original: Response,
  { redirected }: { readonly redirected: boolean },
): Response {
  const { clone } = response
  return Object.defineProperties(response, {
    url: { value: original.url },
    type: { value: original.type },
    status: { value: original.status },
    statusText: { value: original.statusText },
    ok: { value: original.ok },
    redirected: { value: redirected || original.redirected },
    clone: { value: () => disguise(clone.call(response), original, { redirected }) },
  })
}

function sizeOf(chunk: Uint8Array): number {
  return chunk.byteLength
}

function ignore(): void {}
