import { AsyncLocalStorage } from 'node:async_hooks'
import { CancelledError, currentDeadline, UpstreamError } from '@timebudget/core'
import type { ModelEvent } from '../model-events.ts'
import { openSource, type OpenSource, type StreamSource } from '../stream-source.ts'
import { UntilCutOff } from '../until-cut-off.ts'

/** How a model is asked, besides what. */
export interface SourceScope {
  /** Ends it, with the upstream connection; the ambient deadline's by default. */
  readonly signal?: AbortSignal | undefined
  /** Sent with every attempt of the same work. */
  readonly idempotencyKey?: string | undefined
}

/** What SDKs take beside the parameters. */
export interface RequestOptions {
  readonly signal: AbortSignal
  /** Retries belong above the deadline, not below it. */
  readonly maxRetries: 0
  /** Milliseconds. */
  readonly timeout: number
  readonly headers: Record<string, string>
}

/** How an SDK's stream is opened and what its pieces mean. */
export interface Provider<Piece> {
  /** For messages. */
  readonly name: string
  open(options: RequestOptions): PromiseLike<StreamSource<Piece>>
  read(piece: Piece): Iterable<ModelEvent>
}

/** The SDKs' own timeouts end at the headers, and none of them knows the deadline: this is the most that they take. */
const outOfTheWay = 2 ** 31 - 1

const left = 'the answer was left before its end'

/**
 * A provider's stream as events, asked for when the first is wanted, on behalf of whoever made it. It ends after its
 * finish, or it fails: an SDK that ends silently, because it was aborted or because the connection closed early, is not
 * believed. Leaving it closes the upstream connection, at any time.
 */
export function eventsOf<Piece>(
  provider: Provider<Piece>,
  { signal = currentDeadline()?.signal, idempotencyKey }: SourceScope = {},
): AsyncIterableIterator<ModelEvent> {
  const controller = new AbortController()
  const options: RequestOptions = {
    signal: controller.signal,
    maxRetries: 0,
    timeout: outOfTheWay,
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  }
  const onBehalf = AsyncLocalStorage.snapshot()
  const open = async (): Promise<StreamSource<Piece>> => onBehalf(() => provider.open(options))
  const events = read({ provider, open, signal, controller })
  return {
    next: () => events.next(),
    return() {
      // a generator that waits for its next piece would hear of it only after that
      controller.abort(new CancelledError(left))
      return events.return(undefined)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

async function* read<Piece>({
  provider,
  open,
  signal,
  controller,
}: {
  readonly provider: Provider<Piece>
  readonly open: () => Promise<StreamSource<Piece>>
  readonly signal: AbortSignal | undefined
  readonly controller: AbortController
}): AsyncGenerator<ModelEvent, undefined> {
  signal?.throwIfAborted()
  const follow = (): void => controller.abort(signal?.reason)
  signal?.addEventListener('abort', follow)
  const cutOff = new UntilCutOff((tell) =>
    controller.signal.addEventListener('abort', () => tell(controller.signal.reason)),
  )
  let pieces: OpenSource<Piece> | undefined
  let isOver = false
  let isFinished = false
  try {
    pieces = openSource(await cutOff.of(open()))
    for (;;) {
      const { done, value } = await cutOff.of(pieces.next())
      if (done === true) break
      for (const event of provider.read(value)) {
        isFinished ||= event.type === 'finish'
        yield event
      }
    }
    if (!isFinished) throw new UpstreamError(`${provider.name} was interrupted: it ended before its end`)
    isOver = true
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason
    // its reader has left while it waited
    if (!controller.signal.aborted) throw error
  } finally {
    signal?.removeEventListener('abort', follow)
    if (!isOver) {
      // an SDK closes nothing by itself when its reader leaves
      controller.abort(new CancelledError(left))
      pieces?.stop()
    }
  }
}
