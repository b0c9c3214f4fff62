// What a request under a deadline holds of the heap while it is on, beyond the bare one.
import { fileURLToPath } from 'node:url'
import { withWorkers } from '../support/worker.mjs'
import { guardsAlone, servers } from './http-servers.mjs'

const serverFile = fileURLToPath(new URL('http-process.mjs', import.meta.url))
const readersFile = fileURLToPath(new URL('../support/open-process.mjs', import.meta.url))

export async function runHeld({ node, quick }) {
  const count = quick ? 500 : 2_000
  const rows = []
  for (const framework of Object.keys(servers)) {
    const held = new Map()
    for (const variant of Object.keys(servers[framework])) {
      const args = [framework, variant]
      held.set(variant, await withWorkers((start) => bytesOfHeld({ start, node, args, count })))
    }
    rows.push(...rowsOf(framework, held))
  }
  return [
    { title: `${count.toLocaleString('en')} requests at once that nobody asks for their signals`, rows },
  ]
}

async function bytesOfHeld({ start, node, args, count }) {
  const server = await start(serverFile, { node: node.path, flags: ['--expose-gc'], args })
  const port = await server.ask('port')
  // the first ones warm up what all of them share
  const first = await start(readersFile)
  await first.ask('open', { port, count: 200, path: '/held' })
  await server.ask('held', 200)
  await first.stop()
  await server.ask('held', 0)
  const before = await server.ask('heap')
  const readers = await start(readersFile)
  await readers.ask('open', { port, count, path: '/held' })
  await server.ask('held', count)
  return ((await server.ask('heap')) - before) / count
}

function rowsOf(framework, held) {
  const bare = held.get('bare')
  const floor = { name: guardsAlone, value: held.get(guardsAlone) - bare }
  return Array.from(held, ([variant, bytes]) => {
    const beyond = bytes - bare
    return {
      name: `${framework}, ${variant}`,
      figures: { 'bytes each': bytes, 'beyond bare': beyond },
      targets: variant.startsWith('timebudget')
        ? [{ of: 'beyond bare', value: beyond, most: 160, floor }]
        : [],
    }
  })
}
