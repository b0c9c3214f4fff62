import type { LlmCall } from './call-record.ts'
import type { Cost } from './prices.ts'

/** Who pays. */
export interface Payer {
  readonly feature?: string | undefined
  readonly tenant?: string | undefined
}

/** What a ladder needs of a cost meter. */
export interface CostBook {
  /** Counts a call, once. */
  record(call: LlmCall): void
  /** What a call cost; `undefined` if no price is known. */
  costOf(call: LlmCall): Cost | undefined
  /** Whether this payer may spend more; the refusal if not. */
  refuse(payer: Payer): Error | undefined
  /** A task came to a good answer, whatever it took. */
  noteSuccess(payer: Payer): void
}
