// What the clients call: a hello world.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { serve } from '../support/worker.mjs'

const server = createServer((_request, response) => response.end('hello world')).listen(0, '127.0.0.1')
server.keepAliveTimeout = 60_000
await once(server, 'listening')
serve({ port: () => server.address().port })
