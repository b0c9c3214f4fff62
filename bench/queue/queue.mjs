// What it costs to stand in line under a deadline.
import { fileURLToPath } from 'node:url'
import { interleave, leastOf } from '../support/rounds.mjs'
import { withWorkers } from '../support/worker.mjs'

const file = fileURLToPath(new URL('queue-process.mjs', import.meta.url))
const ours = 'DeadlineQueue'

/** How many wait, and how often that is measured. */
const lengths = [
  { count: 1_000, rounds: 40 },
  { count: 20_000, rounds: 5 },
  { count: 100_000, rounds: 2 },
]

export function runQueue({ node, quick }) {
  return withWorkers(async (start) => measureQueues(await start(file, { node: node.path }), { quick }))
}

async function measureQueues(worker, { quick }) {
  const names = await worker.ask('names')
  const tables = []
  for (const { count, rounds } of quick ? lengths.slice(0, 1) : lengths) {
    const measured = await interleave(names, {
      rounds,
      warmup: count === 1_000 ? 20 : 0,
      measure: async (name) => ({ ns: await worker.ask('costOf', { count, name }) }),
    })
    const own = leastOf(measured, ours, 'ns')
    tables.push({
      title: `${count.toLocaleString('en')} wait: for one to come and go`,
      rows: names.map((name) => {
        const least = leastOf(measured, name, 'ns')
        return { name, figures: { 'ns CPU, least': least, 'of DeadlineQueue': least / own } }
      }),
    })
  }
  return tables
}
