import type { Clock } from '@timebudget/core'
import type { AnswerReader } from './answer-reader.ts'
import type { ModelCall } from './model-call.ts'

/** Bytes read ahead of a slow reader; more is left to the connection, which holds the provider back. */
const mostAhead = 64 * 1024

/** Milliseconds that a connection has, after the last event, to end the answer and be used again. */
const lingerLimit = 250

/**
 * An answer's body, read as it comes and not as its reader asks for it, so that the limits judge the provider alone. It
 * ends with the provider's last event, whether or not the connection does.
 */
export class GovernedBody {
  readonly #source: ReadableStreamDefaultReader<Uint8Array>
  readonly #call: ModelCall
  readonly #answer: AnswerReader
  readonly #clock: Clock
  readonly #ahead: Uint8Array[] = []
  #bytesAhead = 0
  #end: { readonly error?: unknown } | undefined
  #wake: (() => void) | undefined
  #makeRoom: (() => void) | undefined

  constructor(
    source: ReadableStream<Uint8Array>,
    {
      call,
      answer,
      clock,
    }: { readonly call: ModelCall; readonly answer: AnswerReader; readonly clock: Clock },
  ) {
    this.#source = source.getReader()
    this.#call = call
    this.#answer = answer
    this.#clock = clock
    call.onFailure((error) => this.#finish({ error }))
    void this.#pump()
  }

  /** What the caller reads. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: (reason) => this.#cancel(reason) },
      { highWaterMark: 0 },
    )
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#ahead.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const chunk = this.#ahead.shift()
    if (chunk !== undefined) {
      this.#bytesAhead -= chunk.byteLength
      if (this.#bytesAhead <= mostAhead / 2) this.#makeRoom?.()
      return controller.enqueue(chunk)
    }
    // what had come before the failure has been handed on by now
    if (this.#end !== undefined && 'error' in this.#end) throw this.#end.error
    controller.close()
  }

  #cancel(reason: unknown): void {
    this.#ahead.length = 0
    this.#end ??= {}
    this.#makeRoom?.()
    this.#call.abandoned(reason)
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        await this.#room()
        const { done, value } = await this.#source.read()
        if (this.#call.isOver) return
        if (done) return await this.#ended()
        if (await this.#take(value)) return
      }
    } catch (error) {
      this.#finish({ error: await this.#call.broken(error) })
    }
  }

  /** Waits while too much lies ahead of the reader. */
  async #room(): Promise<void> {
    if (this.#bytesAhead < mostAhead || this.#end !== undefined) return
    this.#call.governor.hold()
    await new Promise<void>((resolve) => {
      this.#makeRoom = resolve
    })
    this.#makeRoom = undefined
    this.#call.governor.resume()
  }

  /** Whether this was the last piece. */
  async #take(bytes: Uint8Array): Promise<boolean> {
    const call = this.#call
    call.arrived(bytes.byteLength)
    const { content, terminal, malformed } = this.#answer.take(bytes)
    if (content) call.content()
    this.#hand(bytes)
    if (malformed !== undefined) this.#finish({ error: await call.interrupted(malformed) })
    else if (terminal && call.tally.error !== undefined) this.#finish({ error: call.providerFailed() })
    else if (terminal) {
      call.completed()
      this.#finish({})
      await this.#linger()
    }
    return terminal || malformed !== undefined
  }

  async #ended(): Promise<void> {
    const problem = this.#answer.end()
    if (problem !== undefined) return this.#finish({ error: await this.#call.interrupted(problem) })
    this.#call.completed()
    this.#finish({})
  }

  /** Reads what is left of a connection that is done with, and closes it if it does not end by itself. */
  async #linger(): Promise<void> {
    const timer = this.#clock.wakeAfter(lingerLimit, () => void this.#source.cancel().catch(ignore))
    try {
      while (!(await this.#source.read()).done);
    } catch {
      // all that matters has been read
    } finally {
      timer.cancel()
    }
  }

  #hand(bytes: Uint8Array): void {
    if (this.#end !== undefined || bytes.byteLength === 0) return
    this.#ahead.push(bytes)
    this.#bytesAhead += bytes.byteLength
    this.#wake?.()
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end
    this.#wake?.()
    this.#makeRoom?.()
  }
}

function ignore(): void {}
