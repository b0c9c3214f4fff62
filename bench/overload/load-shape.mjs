/** As many work at the same time. */
export const slots = 32
/** How long the work takes, milliseconds: log-normal. */
export const mean = 600
const sigma = 0.8
/** Users wait so long, milliseconds, and then leave. */
export const patience = 1_200
/** How far off an estimate is: a factor, log-normal. */
const noise = 0.35

/** Requests that arrive at random, the same for every policy: when, how long each takes and how long it seems to. */
export function arrivals({ seconds, load }) {
  const random = randomFrom(7)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const perMillisecond = (load * slots) / mean
  const all = []
  for (let at = 0; ;) {
    at -= Math.log(1 - random()) / perMillisecond
    if (at > seconds * 1_000) return all
    const takes = mean * Math.exp(sigma * normal() - sigma ** 2 / 2)
    all.push({ at, takes, estimate: takes * Math.exp(noise * normal()) })
  }
}

function randomFrom(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
