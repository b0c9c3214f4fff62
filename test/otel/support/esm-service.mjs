// A service that loads nothing of CommonJS, so that only a loader hook lets an instrumentation see node:http.
import { createServer } from 'node:http'
import { operation } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'

const server = createServer(
  withDeadline(async (_request, response) => {
    response.end(await operation('quick', {}, async () => 'done'))
  }),
)
process.on('warning', ({ name, message }) =>
  process.send?.({ event: 'warned', message: `${name}: ${message}` }),
)
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () =>
  process.send?.({ event: 'listening', url: `http://127.0.0.1:${server.address().port}/` }),
)
