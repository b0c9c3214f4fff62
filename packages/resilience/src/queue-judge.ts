import type { Expectation } from './queue-expectation.ts'

// Found by simulation (32 slots, 1 to 3 times what they can do, budgets of once to five times the mean, estimates that
// are 35 and 100 % off): between 0.8 and 0.9, and between 0.05 and 0.4, nothing moves the answers in time by more than 3 %.

/** Where others wait for the slot, waiting must have left that much of the chance that the work had on arrival. */
const keptChance = 0.85

/** Where others wait for the slot, the least chance that is worth it. */
const leastChance = 0.2

/** A chance that is as good as none: the one below which learned floors refuse. */
const hopeless = 0.05

/**
 * The least chance that is worth a slot to work that had so many milliseconds when it came; contested: somebody else wants
 * the slot.
 */
export function leastWorth(
  expectation: Expectation,
  budget: number,
  { contested }: { readonly contested: boolean },
): number {
  return contested ? Math.max(leastChance, keptChance * expectation.chance(budget)) : hopeless
}

/**
 * Milliseconds after which the same request, with the same budget, would be taken: when so much less stands before it;
 * or when nobody waits any more, if only a free slot can help it.
 */
export function retryAfter({
  expectation,
  budget,
  wait,
  drained,
}: {
  readonly expectation: Expectation
  readonly budget: number
  readonly wait: number
  readonly drained: number
}): number {
  const least = leastWorth(expectation, budget, { contested: true })
  if (expectation.chance(budget) < least) return drained
  return Math.max(0, Math.min(drained, wait - (budget - expectation.within(least))))
}
