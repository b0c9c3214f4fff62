import { setTimeout as sleep } from 'node:timers/promises'
import { Slots, type Ticket } from './slots.ts'

/** How a request ended inside the model: all its tokens, stopped half way, or gone before it decoded anything. */
export type DecodeOutcome = 'done' | 'cut' | 'unstarted'

/** What one request cost the model; `started` and `ended` are Unix epoch milliseconds. */
export interface DecodeRecord {
  readonly id: string
  readonly outcome: DecodeOutcome
  readonly started: number
  readonly ended: number
  readonly tokens: number
}

/** What `GET /stats` answers. */
export interface DecoderStats {
  readonly slots: number
  readonly decoding: number
  readonly waiting: number
  readonly decodeSeconds: number
  readonly tokens: number
  /** Decode seconds between the moment a request's signal told that nobody waits any more and its stop. */
  readonly secondsAfterGone: number
  readonly requests: Readonly<Record<DecodeOutcome, number>>
  /** The last 5,000 requests, in the order of their ends. */
  readonly recent: readonly DecodeRecord[]
}

const recordsKept = 5000

/** A model server's decode loop: `slots` answers at a time, each a token every `msPerToken`, and a line for the rest. */
export class Decoder {
  readonly #slots: Slots
  readonly #msPerToken: number
  readonly #requests: Record<DecodeOutcome, number> = { done: 0, cut: 0, unstarted: 0 }
  readonly #recent: DecodeRecord[] = []
  #seconds = 0
  #secondsAfterGone = 0
  #tokens = 0

  constructor(options: { readonly slots: number; readonly msPerToken: number }) {
    this.#slots = new Slots(options.slots)
    this.#msPerToken = options.msPerToken
  }

  /** Puts a request in line; whoever does so must let it `leave`. The signal tells that nobody waits any more. */
  join(id: string, signal: AbortSignal): Decoding {
    return new Decoding(signal, {
      msPerToken: this.#msPerToken,
      ticket: this.#slots.join(signal),
      onEnd: (run, gone) => this.#note({ id, ...run }, gone),
    })
  }

  /** What was decoded so far, and for whom. */
  stats(): DecoderStats {
    return {
      slots: this.#slots.size,
      decoding: this.#slots.taken,
      waiting: this.#slots.waiting,
      decodeSeconds: this.#seconds,
      tokens: this.#tokens,
      secondsAfterGone: this.#secondsAfterGone,
      requests: { ...this.#requests },
      recent: [...this.#recent],
    }
  }

  #note(record: DecodeRecord, gone: number | undefined): void {
    this.#seconds += (record.ended - record.started) / 1000
    this.#tokens += record.tokens
    if (gone !== undefined) this.#secondsAfterGone += (record.ended - Math.max(gone, record.started)) / 1000
    this.#requests[record.outcome]++
    this.#recent.push(record)
    if (this.#recent.length > recordsKept) this.#recent.shift()
  }
}

interface DecodingParts {
  readonly msPerToken: number
  readonly ticket: Ticket
  readonly onEnd: (run: Omit<DecodeRecord, 'id'>, gone: number | undefined) => void
}

/** One request inside the model. */
export class Decoding {
  readonly #signal: AbortSignal
  readonly #parts: DecodingParts
  #outcome: DecodeOutcome = 'unstarted'
  #started: number | undefined
  #tokens = 0
  #gone: number | undefined
  #left = false

  constructor(signal: AbortSignal, parts: DecodingParts) {
    this.#signal = signal
    this.#parts = parts
    signal.addEventListener('abort', this.#noteGone, { once: true })
  }

  /** Settles when there is a slot; rejects with the signal's reason if that aborts before. */
  get turn(): Promise<void> {
    return this.#parts.ticket.turn
  }

  /** Yields the tokens at the model's pace and leaves at the last one, at the abort, or when the reader stops. */
  async *decode(tokens: readonly string[]): AsyncGenerator<string> {
    const signal = this.#signal
    const started = Date.now()
    this.#started = started
    this.#outcome = 'cut'
    try {
      for (const token of tokens) {
        // Against the start, not the last token: a late timer must not slow the whole answer down.
        await sleep(started + (this.#tokens + 1) * this.#parts.msPerToken - Date.now(), undefined, { signal })
        this.#tokens++
        yield token
      }
      this.#outcome = 'done'
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      this.leave()
    }
  }

  /** Leaves the line or gives the slot back, once; `decode` does so by itself. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    this.#signal.removeEventListener('abort', this.#noteGone)
    const ended = Date.now()
    const started = this.#started ?? ended
    this.#parts.onEnd({ outcome: this.#outcome, started, ended, tokens: this.#tokens }, this.#gone)
    this.#parts.ticket.leave()
  }

  readonly #noteGone = (): void => {
    this.#gone = Date.now()
  }
}
