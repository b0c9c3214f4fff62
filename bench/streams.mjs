// What open streams cost: memory of each, and the CPU of their heartbeats, for 2,000 of them in one process. The clients are
// in another, so that theirs is not counted. `npm run build`, then `node --expose-gc bench/streams.mjs`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { withDeadline } from '@timebudget/core/server'
import { memoryResume, sse } from '@timebudget/sse'

const count = 2_000
const heartbeat = 1_000
const seconds = 5
const store = memoryResume({ streams: 100_000, grace: 0 })

async function measureAll() {
  // the first 2,000 also warm up what all of them share
  await measure(variants['a bare response, silent'])
  const rows = []
  for (const [name, handle] of Object.entries(variants)) rows.push({ name, ...(await measure(handle)) })
  console.log(`${count} streams, a heartbeat every ${heartbeat} ms, Node ${process.versions.node}`)
  console.table(rows)
}

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
  const clients = fork(new URL(import.meta.url), [String(server.address().port)])
  while (opened < count) await pause(50)
  await pause(1_500)
  const after = memory()
  const cpu = process.cpuUsage()
  await pause(seconds * 1_000)
  const { user, system } = process.cpuUsage(cpu)
  clients.kill()
  await once(clients, 'exit')
  server.closeAllConnections()
  server.close()
  await pause(500)
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

function openConnections(port) {
  for (let index = 0; index < count; index += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    socket.resume()
  }
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

function round(value) {
  return Math.round(value * 10) / 10
}

if (process.send === undefined) await measureAll()
else openConnections(Number(process.argv[2]))
