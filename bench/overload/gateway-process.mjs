// What users talk to: passes each question on to the engine. `node gateway-process.mjs static 4000`
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { request as requestUnderDeadline } from '@timebudget/clients/node-http'
import { serve } from '../support/worker.mjs'
import { patience } from './load-shape.mjs'

const [policy, engine] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
const listeners = {
  none: passOn,
  // the user is answered in time, and nobody tells the engine
  static: (request, response) => {
    const timer = setTimeout(() => {
      if (response.headersSent) return
      response.statusCode = 504
      response.end('too late')
    }, patience)
    response.on('close', () => clearTimeout(timer))
    passOn(request, response)
  },
  propagated: withDeadline(
    (request, response) => {
      const outgoing = requestUnderDeadline(targetOf(request), (answer) => {
        response.statusCode = answer.statusCode
        answer.pipe(response)
      })
      outgoing.on('error', () => {
        if (response.headersSent) return
        response.statusCode = 502
        response.end()
      })
      outgoing.end()
    },
    { default: patience },
  ),
}
const server = createServer(listeners[policy]).listen(0, '127.0.0.1')
await once(server, 'listening')
serve({ port: () => server.address().port })

function passOn(request, response) {
  const outgoing = httpRequest(targetOf(request), (answer) => {
    answer.resume()
    answer.on('end', () => response.headersSent || response.end('text'))
  })
  outgoing.on('error', () => response.headersSent || response.destroy())
  outgoing.end()
}

function targetOf({ headers }) {
  return { port: engine, host: '127.0.0.1', agent, headers }
}
