// A server of many open streams. Needs `--expose-gc`.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { memoryResume, sse } from '@timebudget/sse'
import { serve, withWorkers } from '../support/worker.mjs'

const [clientsFile, howMany] = process.argv.slice(2)
const count = Number(howMany)
const heartbeat = 1_000
const seconds = 5
const store = memoryResume({ streams: 100_000, grace: 0 })

async function measure(handle) {
  let opened = 0
  const listener = withDeadline(
    (_request, response) => {
      handle(response)
      opened += 1
    },
    { default: '1h', max: '1h' },
  )
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const before = memory()
  const figures = await withWorkers(async (start) => {
    const clients = await start(clientsFile)
    await clients.ask('open', { port: server.address().port, count })
    return watchStreams({ before, isOpen: () => opened === count })
  })
  server.closeAllConnections()
  server.close()
  await pause(500)
  return figures
}

async function watchStreams({ before, isOpen }) {
  while (!isOpen()) await pause(50)
  await pause(1_500)
  const after = memory()
  const cpu = process.cpuUsage()
  await pause(seconds * 1_000)
  const { user, system } = process.cpuUsage(cpu)
  return {
    'heap, KiB a stream': round((after.heapUsed - before.heapUsed) / 1_024 / count),
    'rss, KiB a stream': round((after.rss - before.rss) / 1_024 / count),
    'CPU, % of a core': round((user + system) / 10_000 / seconds),
    'CPU, us a heartbeat': round((user + system) / seconds / ((count * 1_000) / heartbeat)),
  }
}

/** The bare response is what Node takes itself; each of the others adds to it. */
const variants = {
  'a bare response, silent': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n')
  },
  'a bare response, setInterval each': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n')
    const timer = setInterval(() => response.write(':\n\n'), heartbeat)
    response.on('close', () => clearInterval(timer))
  },
  'sse, silent': (response) => void sse(response, { heartbeat: null }).token('x'),
  'sse, comments': (response) => void sse(response, { heartbeat }).token('x'),
  'sse, heartbeat events': (response) => void sse(response, { heartbeat }),
  'sse, resumable, comments': (response) => void sse(response, { heartbeat, resume: store }).token('x'),
}

function memory() {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.()
  return process.memoryUsage()
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

function round(value) {
  return Math.round(value * 10) / 10
}

serve({ names: () => Object.keys(variants), measure: (name) => measure(variants[name]) })
