import type { Frame } from './store.ts'

/** What a Redis that does not keep up may be owed, in characters, before other processes are left to themselves. */
const mostOwed = 4_000_000

/** A stream's frames as text that others read, open for the grace after its end: then it is gone for them. */
export class Mirror {
  readonly readable: ReadableStream<string>
  readonly #grace: number
  readonly #ended: () => void
  #controller: ReadableStreamDefaultController<string> | undefined

  constructor({ grace, ended }: { readonly grace: number; readonly ended: () => void }) {
    this.#grace = grace
    this.#ended = ended
    this.readable = new ReadableStream<string>(
      {
        start: (controller) => {
          this.#controller = controller
        },
      },
      { highWaterMark: mostOwed, size: (text) => text.length },
    )
  }

  append({ text, isLast }: Frame): void {
    this.#controller?.enqueue(text)
    if (isLast) setTimeout(() => this.#close(), this.#grace).unref()
    else if ((this.#controller?.desiredSize ?? 0) < 0) this.#close()
  }

  #close(): void {
    const controller = this.#controller
    this.#controller = undefined
    controller?.close()
    if (controller !== undefined) this.#ended()
  }
}
