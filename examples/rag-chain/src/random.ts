/** Numbers in [0, 1) that depend on nothing but the seed, so that two runs see the same load. */
export function seeded(seed: string): () => number {
  let state = hash(seed) || 1
  return function nextRandom(): number {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 0x1_0000_0000
  }
}

/** One draw from a log-normal distribution: half of all draws lie below `median`, `sigma` is the spread of the logarithm. */
export function logNormal(
  next: () => number,
  shape: { readonly median: number; readonly sigma: number },
): number {
  // Box and Muller; 1 - next() keeps the logarithm away from zero.
  const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  return shape.median * Math.exp(shape.sigma * normal)
}

function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  // Neighbouring seeds ("question 7", "question 8") differ in few bits until these are spread.
  value = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  value = Math.imul(value ^ (value >>> 15), 0x846ca68b)
  return value ^ (value >>> 16)
}
