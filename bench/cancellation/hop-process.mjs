// One service of a chain: asks the next one and waits; the last one answers never. `node hop-process.mjs "timebudget" 4000`
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { request as requestUnderDeadline } from '@timebudget/clients/node-http'
import { serve } from '../support/worker.mjs'

const [variant, next] = process.argv.slice(2)
const ways = { bare, timebudget: withDeadline(timebudget, { default: '1m' }) }
const last = { arrived: withResolvers(), closed: withResolvers() }

const server = createServer((request, response) => {
  if (next === undefined) holdOpen(response)
  return ways[variant](request, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')

/** The moments on the monotonic clock, which all processes of a machine share. */
serve({
  port: () => server.address().port,
  arrived: () => last.arrived.promise,
  async closed() {
    const at = await last.closed.promise
    last.arrived = withResolvers()
    last.closed = withResolvers()
    return at
  },
})

function holdOpen(response) {
  const { closed } = last
  response.socket.once('close', () => closed.resolve(String(process.hrtime.bigint())))
  last.arrived.resolve()
}

/** The least that cancels: what a careful user writes by hand. */
function bare(_request, response) {
  if (next === undefined) return
  const outgoing = httpRequest({ port: next, host: '127.0.0.1', agent: false }, (answer) =>
    answer.pipe(response),
  )
  outgoing.on('error', () => response.destroy())
  response.on('close', () => outgoing.destroy())
  outgoing.end()
}

function timebudget(_request, response) {
  if (next === undefined) return
  const outgoing = requestUnderDeadline({ port: next, host: '127.0.0.1', agent: false }, (answer) =>
    answer.pipe(response),
  )
  outgoing.on('error', () => response.destroy())
  outgoing.end()
}

function withResolvers() {
  let resolve
  const promise = new Promise((settle) => (resolve = settle))
  return { promise, resolve }
}
