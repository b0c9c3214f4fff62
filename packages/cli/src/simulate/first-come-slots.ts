/** Slots for those who come first; whoever's signal aborts leaves the line. */
export class FirstComeSlots {
  readonly #line = new Set<() => void>()
  #free: number

  constructor(slots: number) {
    this.#free = slots
  }

  /** Whether whoever comes now has to wait. */
  get busy(): boolean {
    return this.#free === 0
  }

  /** Runs the work once a slot is free. */
  async run(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    await this.#take(signal)
    try {
      await work()
    } finally {
      this.#release()
    }
  }

  #take(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      if (this.#free > 0) {
        this.#free -= 1
        resolve()
        return
      }
      const leave = (): void => {
        this.#line.delete(enter)
        reject(signal?.reason)
      }
      const enter = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      this.#line.add(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  #release(): void {
    const [first] = this.#line
    if (first === undefined) {
      this.#free += 1
      return
    }
    this.#line.delete(first)
    first()
  }
}
