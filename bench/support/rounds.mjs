/**
 * Measures every variant once a round, so that whatever else the machine does meets all of them. The first rounds warm
 * up and are dropped; every other round goes through them backwards.
 */
export async function interleave(names, { rounds, warmup = 1, measure }) {
  const measured = new Map(names.map((name) => [name, []]))
  for (let round = 0; round < warmup + rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const figures = await measure(name)
      if (round >= warmup) measured.get(name).push(figures)
    }
  }
  return measured
}

/** How one figure of a variant compares with another variant's of the same round: the median of the ratios, and its quartiles. */
export function ratioOf(measured, name, { base, figure }) {
  const others = measured.get(base)
  const ratios = measured.get(name).map((figures, round) => figures[figure] / others[round][figure])
  return { median: quantile(ratios, 0.5), low: quantile(ratios, 0.25), high: quantile(ratios, 0.75) }
}

export function medianOf(measured, name, figure) {
  return quantile(
    measured.get(name).map((figures) => figures[figure]),
    0.5,
  )
}

export function leastOf(measured, name, figure) {
  return Math.min(...measured.get(name).map((figures) => figures[figure]))
}

export function quantile(values, share) {
  const sorted = Float64Array.from(values).toSorted()
  if (sorted.length === 0) return Number.NaN
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)]
  return below + (sorted[Math.ceil(at)] - below) * (at - Math.floor(at))
}
