import { PeerClock } from './skew.ts'

/**
 * The clocks of all peers in bounded memory: two generations, of which the older is dropped when the younger
 * is full. Costs one map lookup for a peer in use, where a list of the least recently used costs three writes.
 */
export class PeerClocks {
  readonly #generationSize: number
  #young = new Map<string, PeerClock>()
  #old = new Map<string, PeerClock>()

  /** Remembers at most `maxPeers` (default 1024). Throws a TypeError unless that is a whole number from 2. */
  constructor({ maxPeers = 1024 }: { maxPeers?: number } = {}) {
    if (!Number.isSafeInteger(maxPeers) || maxPeers < 2) {
      throw new TypeError(`maxPeers must be a whole number of at least 2, got ${String(maxPeers)}`)
    }
    this.#generationSize = Math.floor(maxPeers / 2)
  }

  /** How many peers are remembered now. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  /** The clock of one peer, by whatever names it, usually its address. */
  of(peer: string): PeerClock {
    const known = this.#young.get(peer)
    if (known !== undefined) return known
    const clock = this.#old.get(peer) ?? new PeerClock()
    this.#old.delete(peer)
    if (this.#young.size >= this.#generationSize) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(peer, clock)
    return clock
  }
}
