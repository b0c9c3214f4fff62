// node test/soak/soak.mjs --minutes 5 --seed 42
// Sends requests through random chains, all drawn from the seed, until the time is up; then prints what did not hold.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { planChain } from './plan.mjs'
import { Chance } from './random.mjs'
import { World } from './world.mjs'

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' } },
})
const seconds = numberOf('seconds', values.seconds ?? 60 * numberOf('minutes', values.minutes ?? 5))
const seed = numberOf('seed', values.seed ?? randomInt(2 ** 32))

/** A chain lives for so many rounds; then another one is drawn. */
const roundsOfChain = 8

console.log(`seed ${seed}, ${seconds} s`)
const chance = new Chance(seed)
const until = performance.now() + seconds * 1_000
const faults = []
const pairs = new Map()
let requests = 0
let chains = 0
do {
  const chain = planChain(chance)
  const world = await World.start(chain)
  console.log(`chain ${(chains += 1)}: ${chain.map(({ framework }) => framework).join(' -> ')}`)
  let number = 0
  do {
    number += 1
    const round = { number, requests: chance.between(30, 90), within: chance.between(300, 3_000) }
    await world.round(chance.fork(), round)
  } while (number < roundsOfChain && performance.now() < until)
  await world.finish()
  requests += world.requests
  for (const [pair, count] of world.books.pairs) pairs.set(pair, (pairs.get(pair) ?? 0) + count)
  for (const fault of world.faults) faults.push(`chain ${chains}, ${fault}`)
  console.log(
    `  ${world.requests} requests, ${world.mishaps.kill} kills, ${world.mishaps.freeze} freezes, ${world.faults.length} faults`,
  )
} while (performance.now() < until && faults.length < 20)

console.log('\nwhat callers saw / what servers say, in all hops')
for (const [pair, count] of [...pairs].toSorted(([, one], [, other]) => other - one)) {
  console.log(`${String(count).padStart(8)}  ${pair}`)
}
for (const fault of faults.slice(0, 20)) console.error(`FAULT ${fault}`)
console.log(`\n${requests} requests over ${chains} chains, ${faults.length} faults, seed ${seed}`)
process.exitCode = faults.length === 0 ? 0 : 1

function numberOf(name, text) {
  const number = Number(text)
  if (!(number >= 0)) throw new TypeError(`--${name}: expected a number, got ${text}`)
  return number
}
