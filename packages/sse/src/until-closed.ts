/** Waits for one thing at a time, and no longer than a stream is open. */
export class UntilClosed {
  #isClosed = false
  // one at a time: racing every step against the same promise would pile reactions up on it
  #wake: (() => void) | undefined

  constructor(stream: { onClosed(listener: () => void): void }) {
    stream.onClosed(() => {
      this.#isClosed = true
      this.#wake?.()
    })
  }

  /** What the work comes to, boxed; `undefined` as soon as the stream has closed, though the work may go on. */
  wait<T>(work: () => T | PromiseLike<T>): Promise<{ readonly value: T } | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(undefined)
      Promise.resolve(work()).then((value) => resolve({ value }), reject)
    })
  }
}

/** Hands each item on until one is not taken or the stream closes: then the source is told to stop, and it is `false`. */
export async function readAll<T>(
  source: AsyncIterable<T>,
  { open, use }: { readonly open: UntilClosed; use(item: T): Promise<boolean> },
): Promise<boolean> {
  const iterator = source[Symbol.asyncIterator]()
  for (;;) {
    const step = (await open.wait(() => iterator.next()))?.value
    if (step?.done === true) return true
    if (step === undefined || !(await use(step.value))) {
      leave(iterator)
      return false
    }
  }
}

/** Not waited for: a generator that hangs in its body would not return either. */
function leave(iterator: AsyncIterator<unknown>): void {
  try {
    iterator.return?.()?.then(undefined, () => {})
  } catch {
    // it is of no interest any more
  }
}
