/** Which limit has passed: `silent` is a connection over which nothing comes, `stalled` an answer that does not go on. */
export type Limit = 'first_token' | 'stalled' | 'silent' | 'total'

/** The longest timeout that browsers know. */
const longest = 2 ** 31 - 1

/** The limits of one answer, in milliseconds; it tells of those that pass. */
export class Limits {
  readonly #timers: { [Name in Limit]?: ReturnType<typeof setTimeout> } = {}
  readonly #limits: Readonly<Record<Limit, number>>
  readonly #passed: (limit: Limit) => void

  constructor(limits: Readonly<Record<Limit, number>>, passed: (limit: Limit) => void) {
    this.#limits = limits
    this.#passed = passed
  }

  /** From now on, also where they run already. */
  start(...limits: readonly Limit[]): void {
    this.stop(...limits)
    for (const limit of limits) {
      const after = this.#limits[limit]
      if (after <= longest) this.#timers[limit] = setTimeout(this.#passed, after, limit)
    }
  }

  stop(...limits: readonly Limit[]): void {
    for (const limit of limits) clearTimeout(this.#timers[limit])
  }
}
