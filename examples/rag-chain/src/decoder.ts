import { setTimeout as sleep } from 'node:timers/promises'

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
  readonly #slots: number
  readonly #msPerToken: number
  readonly #line: Array<() => void> = []
  readonly #requests: Record<DecodeOutcome, number> = { done: 0, cut: 0, unstarted: 0 }
  readonly #recent: DecodeRecord[] = []
  #decoding = 0
  #seconds = 0
  #secondsAfterGone = 0
  #tokens = 0

  constructor(options: { readonly slots: number; readonly msPerToken: number }) {
    this.#slots = options.slots
    this.#msPerToken = options.msPerToken
  }

  /** Waits in line for a slot, first come, first served; rejects with the signal's reason once that aborts. */
  async enter(id: string, signal: AbortSignal): Promise<Slot> {
    const admitted =
      !signal.aborted && (this.#decoding < this.#slots ? this.#take() : await this.#turn(signal))
    if (!admitted) {
      this.#note({ id, outcome: 'unstarted', started: Date.now(), ended: Date.now(), tokens: 0 })
      throw signal.reason
    }
    return new Slot(this.#msPerToken, (run, gone) => this.#leave({ id, ...run }, gone))
  }

  /** What was decoded so far, and for whom. */
  stats(): DecoderStats {
    return {
      slots: this.#slots,
      decoding: this.#decoding,
      waiting: this.#line.length,
      decodeSeconds: this.#seconds,
      tokens: this.#tokens,
      secondsAfterGone: this.#secondsAfterGone,
      requests: { ...this.#requests },
      recent: [...this.#recent],
    }
  }

  #take(): true {
    this.#decoding++
    return true
  }

  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const called = (): void => {
        signal.removeEventListener('abort', gone)
        resolve(true)
      }
      const gone = (): void => {
        this.#line.splice(this.#line.indexOf(called), 1)
        resolve(false)
      }
      this.#line.push(called)
      signal.addEventListener('abort', gone, { once: true })
    })
  }

  #leave(record: DecodeRecord, gone: number | undefined): void {
    this.#seconds += (record.ended - record.started) / 1000
    this.#tokens += record.tokens
    if (gone !== undefined) this.#secondsAfterGone += Math.max(0, record.ended - gone) / 1000
    this.#note(record)
    // The slot goes straight to the next in line, so that a newcomer cannot take it in between.
    const next = this.#line.shift()
    if (next) next()
    else this.#decoding--
  }

  #note(record: DecodeRecord): void {
    this.#requests[record.outcome]++
    this.#recent.push(record)
    if (this.#recent.length > recordsKept) this.#recent.shift()
  }
}

type Leave = (run: Omit<DecodeRecord, 'id'>, gone: number | undefined) => void

/** A place in the decode loop; whoever holds it must `leave`, decoded or not. */
export class Slot {
  readonly #msPerToken: number
  readonly #leave: Leave
  #outcome: DecodeOutcome = 'unstarted'
  #started = Date.now()
  #tokens = 0
  #gone: number | undefined
  #left = false

  constructor(msPerToken: number, leave: Leave) {
    this.#msPerToken = msPerToken
    this.#leave = leave
  }

  /** Yields the tokens at the model's pace and leaves the slot at the last one, at the abort, or when the reader stops. */
  async *decode(tokens: readonly string[], signal: AbortSignal): AsyncGenerator<string> {
    this.#outcome = 'cut'
    this.#started = Date.now()
    const noteGone = (): void => void (this.#gone = Date.now())
    signal.addEventListener('abort', noteGone, { once: true })
    try {
      for (const token of tokens) {
        // Against the start, not the last token: a late timer must not slow the whole answer down.
        const due = this.#started + (this.#tokens + 1) * this.#msPerToken
        await sleep(due - Date.now(), undefined, { signal })
        this.#tokens++
        yield token
      }
      this.#outcome = 'done'
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      signal.removeEventListener('abort', noteGone)
      this.leave()
    }
  }

  /** Gives the slot back, once. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    const run = { outcome: this.#outcome, started: this.#started, ended: Date.now(), tokens: this.#tokens }
    this.#leave(this.#outcome === 'unstarted' ? { ...run, started: run.ended } : run, this.#gone)
  }
}
