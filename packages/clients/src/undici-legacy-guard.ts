import type { Dispatcher } from 'undici'
import { rawHeader, type RawHeaders } from './raw-headers.ts'
import { type Abort, AttemptAnswer, type CallParts, GuardedCall } from './undici-call.ts'

type Handler = Dispatcher.DispatchHandler

/** A guard of the generation that undici 6 knows. */
export class LegacyGuard extends GuardedCall implements Handler {
  readonly #inner: Handler
  #abort: Abort | undefined

  constructor(inner: Handler, parts: CallParts) {
    super(parts)
    this.#inner = inner
  }

  protected override stop(reason: Error): void {
    this.#abort?.(reason)
  }

  protected override tell(reason: Error): void {
    this.#inner.onError?.(reason)
  }

  onConnect(abort: Abort, ...context: readonly unknown[]): void {
    this.#abort = abort
    if (this.closedBy !== undefined) return abort(this.closedBy.reason)
    const abandon: Abort = (reason) => this.abandoned(reason, abort)
    // undici 6 hands over a context too
    Reflect.apply(this.#inner.onConnect ?? ignore, this.#inner, [abandon, ...context])
  }

  onUpgrade(...answer: Parameters<NonNullable<Handler['onUpgrade']>>): void {
    if (!this.isClosed && this.completed()) this.#inner.onUpgrade?.(...answer)
  }

  onResponseStarted(): void {
    if (!this.isClosed) this.#inner.onResponseStarted?.()
  }

  onHeaders(status: number, headers: Buffer[], resume: () => void, text: string): boolean {
    if (!this.isClosed) this.answered(new LegacyAnswer(this.attempt, status, headers))
    // what is for nobody is read on, until undici has stopped
    return this.isClosed || (this.#inner.onHeaders?.(status, headers, resume, text) ?? true)
  }

  onData(chunk: Buffer): boolean {
    return this.isClosed || (this.#inner.onData?.(chunk) ?? true)
  }

  onComplete(trailers: string[] | null): void {
    if (!this.isClosed && this.completed()) this.#inner.onComplete?.(trailers)
  }

  onError(error: Error): void {
    if (!this.isClosed) this.failed(error)
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (!this.isClosed) this.#inner.onBodySent?.(chunkSize, totalBytesSent)
  }
}

class LegacyAnswer extends AttemptAnswer<RawHeaders> {
  protected override header(headers: RawHeaders, name: string): string | undefined {
    return rawHeader(headers, name)
  }
}

function ignore(): void {}
