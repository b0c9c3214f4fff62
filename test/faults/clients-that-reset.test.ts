import { describe, expect, test } from 'vitest'
import { type Exchange, type Served, serve } from '../../packages/core/test/server/host.ts'
import { aborted, forever } from '../../packages/core/test/server/waiting.ts'
import { hosts } from './hosts.ts'
import { RawClient } from './raw-client.ts'

const head = 'POST /struck HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n'

interface Stage {
  /** Brings the request so far. */
  reach(client: RawClient, server: Served): Promise<unknown> | void
  /** Whether there is a request by then, and how it ends. */
  readonly outcome?: 'client_closed' | 'ok'
}

const stages: Readonly<Record<string, Stage>> = {
  'before its headers': { reach: () => undefined },
  'in the middle of its headers': { reach: (client) => client.send(head.slice(0, -30)) },
  'after its headers': {
    async reach(client, server) {
      client.send(`${head}\r\n`)
      await entered(server, '/struck')
    },
    outcome: 'client_closed',
  },
  'in the middle of its body': {
    async reach(client, server) {
      client.send(`${head}\r\n12345`)
      await entered(server, '/struck')
    },
    outcome: 'client_closed',
  },
  'after its body, before the answer': {
    async reach(client, server) {
      client.send(`${head}\r\n1234567890`)
      await entered(server, '/struck')
    },
    outcome: 'client_closed',
  },
  'in the middle of the answer': {
    async reach(client) {
      client.send(`${head.replace('struck', 'half')}\r\n1234567890`)
      await client.until(() => /half/.test(client.answers[0]?.body ?? ''))
    },
    outcome: 'client_closed',
  },
  'after the answer': {
    async reach(client) {
      client.send(`${head.replace('struck', 'quick')}\r\n1234567890`)
      expect(await client.answered()).toMatchObject([{ status: 200, body: 'done' }])
    },
    outcome: 'ok',
  },
}

async function entered(server: Served, path: string): Promise<Exchange> {
  for (let count = 1; ; count += 1) {
    const exchange = await server.entered.nth(count)
    if (exchange.request.url === path) return exchange
  }
}

async function handler({ request, response }: Exchange): Promise<unknown> {
  if (request.url === '/struck') return forever()
  response.writeHead(200, { 'content-type': 'text/plain' })
  if (request.url === '/half') {
    response.write('half')
    return forever()
  }
  response.end('done')
  return undefined
}

describe.each(hosts)('a client that resets its connection: $name', (host) => {
  test.each(Object.entries(stages))(
    '%s ends its request once, as its own doing, and nobody else’s',
    async (_stage, { reach, outcome }) => {
      await using server = await serve(host, { handler, options: { default: '15s' }, isRaw: true })
      using neighbour = await RawClient.to({ port: server.port, host: 'localhost' })
      neighbour.get('/half')
      await entered(server, '/half')

      using client = await RawClient.to({ port: server.port, host: 'localhost' })
      await reach(client, server)
      client.reset()
      await client.closed()

      if (outcome !== undefined) {
        expect(await server.finished.nth(1)).toMatchObject({ outcome })
        const struck = server.entered.all[1]
        if (outcome === 'client_closed' && struck !== undefined)
          expect(await aborted(struck.deadline.signal)).toMatchObject({ code: 'CLIENT_CLOSED' })
        else expect(struck?.deadline.signal.aborted).toBe(false)
      }
      using next = await RawClient.to({ port: server.port, host: 'localhost' })
      next.get('/quick')
      expect(await next.answered()).toMatchObject([{ status: 200, body: 'done' }])
      expect(neighbour.answers).toMatchObject([{ status: 200, body: 'half', isWhole: false }])
      expect(neighbour.isClosed).toBe(false)
      expect(server.finished.all).toHaveLength(outcome === undefined ? 1 : 2)
      expect(server.started.all).toHaveLength(outcome === undefined ? 2 : 3)
      expect(server.late.all).toEqual([])
    },
  )
})
