/** A source of numbers from 0 up to 1. */
export type Random = () => number

/** A stream of random numbers that the seed and the stream's name alone determine (mulberry32: 32 bits of state). */
export function seededRandom(seed: number, stream: string): Random {
  let state = mixedWith(stream, seed)
  return function nextRandom(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The standard normal distribution, by Box and Muller. */
export function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random()))
  return radius * Math.cos(2 * Math.PI * random())
}

/** An exponentially distributed number with mean 1: the gap between two arrivals that know nothing of each other. */
export function exponential(random: Random): number {
  return -Math.log(1 - random())
}

/** The log-normal distribution by its mean and the deviation of its logarithm; `deviate` is a standard normal number. */
export function logNormal(mean: number, sigma: number, deviate: number): number {
  return mean * Math.exp(sigma * deviate - sigma ** 2 / 2)
}

function mixedWith(stream: string, seed: number): number {
  let mixed = seed | 0
  for (const character of stream) mixed = Math.imul(mixed ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return mixed
}
