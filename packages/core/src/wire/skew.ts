/** What one peer's messages tell about its clock; see `PeerClock.observe`. */
export interface ClockReading {
  /** Milliseconds by which this message was held up beyond the peer's usual transit. */
  readonly charged: number
  /** Smallest transit lately seen: the difference of the two clocks as far as it is known, ms. */
  readonly skew: number
}

/** The transit history of one peer. */
export class PeerClock {
  /** Takes one message's transit, seen `at` epoch ms, and says how much of it was waiting. */
  observe(transit: number, _at: number, _tolerance: number = 50): ClockReading {
    return { charged: 0, skew: transit }
  }

  /** The skew in ms if a warning about it is due at epoch ms `at`: 20 ms or more, once a minute. */
  warningDue(_at: number): number | undefined {
    return undefined
  }
}

/** The clocks of all peers, in bounded memory: those not heard of for longest are forgotten. */
export class PeerClocks {
  constructor(_options: { maxPeers?: number } = {}) {}

  /** How many peers are remembered now. */
  get size(): number {
    return 0
  }

  /** The clock of one peer, by whatever names it (usually its address). */
  of(_peer: string): PeerClock {
    return new PeerClock()
  }
}
