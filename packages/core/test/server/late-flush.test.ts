import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { withDeadline } from '@timebudget/core/server'

test('headers that are flushed after the deadline are the 504, and the connection serves the next request', async () => {
  const server = createServer(
    withDeadline(
      (_request, response) => {
        const until = performance.now() + 40
        while (performance.now() < until);
        response.flushHeaders()
        response.write('late')
        response.end('later')
      },
      { default: 10 },
    ),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let request = 0; request < 2; request += 1) {
    const [answer]: IncomingMessage[] = await once(get({ port, host: '127.0.0.1', agent }), 'response')
    expect(answer?.statusCode).toBe(504)
    expect(answer && JSON.parse(await text(answer))).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  }
  agent.destroy()
  server.close()
})
