// What open streams cost: the memory of each, and the CPU of their heartbeats.
import { fileURLToPath } from 'node:url'
import { withWorkers } from '../support/worker.mjs'

const readersFile = fileURLToPath(new URL('../support/open-process.mjs', import.meta.url))
const fileOf = (name) => fileURLToPath(new URL(`${name}-process.mjs`, import.meta.url))

export function runStreams({ node, quick }) {
  return withWorkers((start) => measureStreams(start, { node, quick }))
}

async function measureStreams(start, { node, quick }) {
  const count = quick ? 200 : 2_000
  const args = [readersFile, String(count)]
  const server = await start(fileOf('streams'), { node: node.path, flags: ['--expose-gc'], args })
  const names = await server.ask('names')
  // the first ones also warm up what all of them share
  await server.ask('measure', names[0])
  const rows = []
  for (const name of names) rows.push({ name, figures: await server.ask('measure', name) })
  return [{ title: `${count.toLocaleString('en')} open streams, a heartbeat a second`, rows }]
}
