// node --expose-gc test/security/fuzz.mjs --seconds 60 --seed 42
// Feeds what reads a stranger's text with texts that are nearly right; those that reach code which no text before has
// reached are kept and changed further. Then measures that time and memory grow no faster than the text.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Chance } from '../soak/random.mjs'
import { Coverage } from './coverage.mjs'
import { longTexts, mutated } from './mutations.mjs'
import { targets } from './targets.mjs'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const seconds = Number(values.seconds ?? 60)
const seed = Number(values.seed ?? randomInt(2 ** 32))
const chance = new Chance(seed)
const faults = []
process.on('warning', ({ name, message }) => faults.push(`${name}: ${message}`))
const pristine = Object.getOwnPropertyNames(Object.prototype).join()

/** What is tried between two looks at the coverage, which cost milliseconds. */
const batchSize = 256

console.log(`seed ${seed}, ${seconds} s, ${targets.length} targets`)
const coverage = new Coverage()
let runs = 0
for (const target of targets) {
  const corpus = [...target.seeds, '', ' ']
  await tryAll(target, corpus)
  coverage.takeNew()
  const until = performance.now() + (seconds * 1_000) / targets.length
  let ran = 0
  do {
    const batch = Array.from({ length: batchSize }, () => mutated(chance, corpus))
    await tryAll(target, batch)
    ran += batch.length
    const blocks = coverage.takeNew()
    if (blocks.length > 0) corpus.push(await reaching(blocks, { target, batch }))
  } while (performance.now() < until && faults.length < 20)
  runs += ran
  console.log(`${target.name}: ${ran} runs, ${corpus.length} kept`)
}
const reached = coverage.size
coverage.stop()
for (const target of targets) {
  await checkTime(target)
  await checkMemory(target)
}
if (Object.getOwnPropertyNames(Object.prototype).join() !== pristine)
  faults.push('Object.prototype was written to')

for (const fault of faults.slice(0, 20)) console.error(`FAULT ${fault}`)
console.log(`${runs} runs, ${reached} blocks reached, ${faults.length} faults, seed ${seed}`)
process.exitCode = faults.length === 0 ? 0 : 1

async function tryAll(target, texts) {
  for (const text of texts) {
    try {
      await target.check(text)
    } catch (error) {
      faults.push(`${target.name}: ${JSON.stringify(text.slice(0, 300))}: ${error.message}`)
    }
  }
}

/** The text of a batch by which one of the blocks was reached: its half is tried again, and so on. */
async function reaching(blocks, { target, batch }) {
  let texts = batch
  while (texts.length > 1) {
    const half = texts.slice(0, texts.length >> 1)
    coverage.take()
    await tryAll(target, half)
    const again = new Set(coverage.take())
    texts = blocks.some((block) => again.has(block)) ? half : texts.slice(half.length)
  }
  return texts[0]
}

/** Eight times the length may cost eight times as much, or three times that where the measurement is a poor one. */
async function checkTime(target) {
  const shorts = longTexts(4_000)
  const longs = longTexts(32_000)
  for (const [index, short] of shorts.entries()) {
    let less
    let more
    for (let measurement = 0; measurement < 5; measurement += 1) {
      less = await costOf(target, short)
      more = await costOf(target, longs[index])
      if (more <= Math.max(less, 1) * 24) break
    }
    if (more <= Math.max(less, 1) * 24) continue
    const piece = JSON.stringify(short.slice(0, 20))
    faults.push(
      `${target.name}: ${less.toFixed(2)} ms for 4,000 and ${more.toFixed(2)} ms for 32,000 of ${piece}`,
    )
  }
}

/** Milliseconds of CPU. */
async function costOf(target, text) {
  const before = process.cpuUsage()
  await tryAll(target, [text])
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** What was read must be gone afterwards, whatever it was. */
async function checkMemory(target) {
  const texts = longTexts(16_000)
  await tryAll(target, texts)
  globalThis.gc()
  const before = process.memoryUsage().heapUsed
  for (let round = 0; round < 3; round += 1) await tryAll(target, texts)
  globalThis.gc()
  const grown = process.memoryUsage().heapUsed - before
  if (grown > 4e6) faults.push(`${target.name} keeps ${grown} bytes`)
}
