/** What a reader of pieces needs to know of the work that makes them. */
interface Making<Piece> {
  readonly pieces: AsyncGenerator<Piece>
  /** Ends that work, because its reader has gone; `workEnded` is called then. */
  readonly leave: () => void
}

/**
 * One reader of an answer's pieces, who may leave at any moment, also while it waits for the next one. The work comes to its
 * end in time, even if its reader never begins, or never comes back.
 */
export class PiecesReader<Piece> implements AsyncIterableIterator<Piece> {
  readonly #making: Making<Piece>
  #waiting = 0
  #last: Promise<IteratorResult<Piece>> | undefined
  /** What was read for a reader who was not there. */
  #ahead: Promise<IteratorResult<Piece>> | undefined
  #hasLeft = false

  constructor(making: Making<Piece>) {
    this.#making = making
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Piece>> {
    if (this.#hasLeft) return done
    const ahead = this.#ahead
    this.#ahead = undefined
    this.#waiting += 1
    try {
      return await (ahead ?? this.#read())
    } catch (error) {
      if (this.#hasLeft) return done
      throw error
    } finally {
      this.#waiting -= 1
    }
  }

  /** A generator would let its reader wait until the piece is there that it has asked for last. */
  async return(): Promise<IteratorResult<Piece>> {
    this.#hasLeft = true
    this.#making.leave()
    await this.#last?.catch(ignore)
    return done
  }

  /** The work has ended from outside: where nobody waits for a piece, nobody else would let it come to its end. */
  workEnded(): void {
    if (this.#waiting > 0 || this.#ahead !== undefined) return
    this.#ahead = this.#read()
    this.#ahead.catch(ignore)
  }

  #read(): Promise<IteratorResult<Piece>> {
    this.#last = this.#making.pieces.next()
    return this.#last
  }
}

const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined })

function ignore(): void {}
