/**
 * Shares out a capacity max-min fairly: all get the same, but nobody more than they demand, and what they leave goes to
 * the others. In whatever unit capacity and demands have.
 */
export function fairShares(capacity: number, demands: readonly number[]): readonly number[] {
  const shares = demands.map(() => 0)
  const byDemand = demands.map((demand, index) => ({ demand, index })).sort((a, b) => a.demand - b.demand)
  let left = capacity
  for (const [served, { demand, index }] of byDemand.entries()) {
    const share = Math.min(demand, left / (byDemand.length - served))
    shares[index] = share
    left -= share
  }
  return shares
}
