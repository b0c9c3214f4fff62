// One server of one kind, for a hello world: `node http-process.mjs "Express" "timebudget"`.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { serve } from '../support/worker.mjs'
import { servers } from './http-servers.mjs'

const [framework, variant] = process.argv.slice(2)
const listener = await servers[framework][variant]()
const server = typeof listener === 'function' ? createServer(listener) : listener
server.listen(0, '127.0.0.1')
await once(server, 'listening')

let open = 0
// not where time counts
if (globalThis.gc !== undefined) server.on('request', countOpen)

function countOpen(_request, response) {
  open += 1
  response.on('close', () => (open -= 1))
}

serve({ port: () => server.address().port, heap, held })

/** Settles once so many requests are on. */
async function held(count) {
  while (open !== count) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Bytes of the heap in use, after garbage collection. */
function heap() {
  for (let round = 0; round < 4; round += 1) globalThis.gc()
  return process.memoryUsage().heapUsed
}
