/** Which limit has passed. */
export type Limit = 'first_token' | 'stalled' | 'total'

/** The longest timeout that browsers know. */
const longest = 2 ** 31 - 1

/** Watches the limits of one answer, in milliseconds, and tells of those that pass. */
export class Limits {
  readonly #timers = new Map<Limit, ReturnType<typeof setTimeout>>()
  readonly #limits: Readonly<Record<Limit, number>>
  readonly #passed: (limit: Limit) => void

  constructor(limits: Readonly<Record<Limit, number>>, passed: (limit: Limit) => void) {
    this.#limits = limits
    this.#passed = passed
    this.#start('first_token')
    this.#start('total')
    this.heard()
  }

  /** The server has shown a sign of life. */
  heard(): void {
    this.#start('stalled')
  }

  firstTokenCame(): void {
    clearTimeout(this.#timers.get('first_token'))
  }

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
  }

  #start(limit: Limit): void {
    clearTimeout(this.#timers.get(limit))
    const after = this.#limits[limit]
    if (after <= longest) this.#timers.set(limit, setTimeout(this.#passed, after, limit))
  }
}
