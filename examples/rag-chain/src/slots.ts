/** A fixed number of slots, and a line before them: first come, first served. */
export class Slots {
  readonly size: number
  readonly #line: Ticket[] = []
  #taken = 0

  constructor(size: number) {
    this.size = size
  }

  get taken(): number {
    return this.#taken
  }

  get waiting(): number {
    return this.#line.length
  }

  /** Joins the line; the ticket is its holder's to `leave`, whatever became of it. */
  join(signal: AbortSignal): Ticket {
    const ticket = new Ticket(signal, (hadSlot) => (hadSlot ? this.#passOn() : this.#strike(ticket)))
    if (this.#taken < this.size) {
      this.#taken++
      ticket.admit()
    } else {
      this.#line.push(ticket)
    }
    return ticket
  }

  // The slot goes straight to the next in line, so that a newcomer cannot take it in between.
  #passOn(): void {
    const next = this.#line.shift()
    if (next) next.admit()
    else this.#taken--
  }

  #strike(ticket: Ticket): void {
    this.#line.splice(this.#line.indexOf(ticket), 1)
  }
}

/** A place in the line, and later a slot. */
export class Ticket {
  /** Settles when a slot is there; rejects with the signal's reason if that aborts before. */
  readonly turn: Promise<void>
  readonly #signal: AbortSignal
  readonly #onLeave: (hadSlot: boolean) => void
  #admit: () => void = () => {}
  #refuse: (reason: unknown) => void = () => {}
  #state: 'waiting' | 'admitted' | 'left' = 'waiting'

  constructor(signal: AbortSignal, onLeave: (hadSlot: boolean) => void) {
    this.#signal = signal
    this.#onLeave = onLeave
    this.turn = new Promise((resolve, reject) => {
      this.#admit = resolve
      this.#refuse = reject
    })
    // Whoever has left the line need not hear of its turn.
    this.turn.catch(() => {})
    if (signal.aborted) this.#refuse(signal.reason)
    else signal.addEventListener('abort', this.#giveUp, { once: true })
  }

  /** The slots' part: its turn has come. */
  admit(): void {
    this.#signal.removeEventListener('abort', this.#giveUp)
    this.#state = 'admitted'
    this.#admit()
  }

  /** Leaves the line or gives the slot back, once. */
  leave(): void {
    const state = this.#state
    if (state === 'left') return
    this.#state = 'left'
    this.#signal.removeEventListener('abort', this.#giveUp)
    this.#onLeave(state === 'admitted')
  }

  readonly #giveUp = (): void => {
    this.#refuse(this.#signal.reason)
    this.leave()
  }
}
