// What a seed comes to: the chain, and for each request what the client and every hop do with it.

const frameworks = ['express', 'koa', 'fastify', 'http']
const clients = ['fetch', 'undici', 'http', 'axios', 'got']

/** The hops from the entry on; each knows how it treats requests in general. */
export function planChain(chance) {
  return Array.from({ length: chance.between(1, 4) }, (_, index) => ({
    name: `hop${index + 1}`,
    framework: chance.oneOf(frameworks),
    options: {
      default: chance.between(300, 4_000),
      max: chance.between(4_000, 8_000),
      reserve: chance.happens(0.3) ? chance.between(1, 60) : 0,
      floor: chance.happens(0.3) ? chance.between(1, 40) : 0,
      ambient: chance.happens(0.85),
    },
  }))
}

/** One request: when it is sent, what its client allows and when it leaves, and what each hop does. */
export function planRequest(chance, { id, hops, within }) {
  const budget = chance.happens(0.15) ? undefined : chance.between(1, chance.oneOf([60, 400, 3_000, 6_000]))
  return {
    id,
    at: chance.between(0, within),
    budget,
    // before the head, in the midst of a body, or long after the end
    leavesAfter: chance.happens(0.25) ? chance.between(0, 2_000) : undefined,
    steps: Array.from({ length: hops }, () => planStep(chance)),
    upstream: planUpstream(chance),
  }
}

/** What one hop does with a request: its own work, its calls, its answer. */
function planStep(chance) {
  return {
    client: chance.oneOf(clients),
    timeout: chance.happens(0.2) ? chance.between(5, 1_500) : undefined,
    floor: chance.happens(0.2) ? chance.between(1, 200) : undefined,
    reserve: chance.happens(0.2) ? chance.between(1, 150) : undefined,
    attempts: chance.happens(0.25) ? 2 : 1,
    calls: chance.happens(0.15) ? chance.between(2, 4) : 1,
    thinks: chance.happens(0.4) ? chance.between(0, 120) : 0,
    isDeaf: chance.happens(0.2),
    handsSignalOn: chance.happens(0.5),
    forgets: chance.happens(0.1),
    answer: chance.weighed({
      pass: 10,
      stream: 4,
      late: 1,
      fail: 1,
      hang: 1,
      halt: 1,
    }),
    events: chance.between(0, 12),
    gap: chance.between(0, 60),
    lateBy: chance.between(0, 200),
  }
}

/** What stands behind the last hop does. */
function planUpstream(chance) {
  const kind = chance.weighed({ quick: 12, slow: 5, silent: 2, reset: 1, half: 1, busy: 1, drip: 2, dead: 1 })
  return { kind, for: chance.between(0, chance.oneOf([50, 500, 3_000])) }
}

/** What befalls hops in a round, beside what their requests do. */
export function planMishaps(chance, { hops, within }) {
  const mishaps = []
  if (chance.happens(0.35)) {
    mishaps.push({ kind: 'kill', hop: chance.between(0, hops - 1), at: chance.between(0, within) })
  }
  if (chance.happens(0.35)) {
    const lasts = chance.between(50, 700)
    mishaps.push({ kind: 'freeze', hop: chance.between(0, hops - 1), at: chance.between(0, within), lasts })
  }
  return mishaps
}
