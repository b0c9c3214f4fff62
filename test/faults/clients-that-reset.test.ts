import { createServer, type Server } from 'node:http'
import { deadline as expressDeadline, deadlineErrors } from '@timebudget/express'
import { deadline } from '@timebudget/koa'
import express from 'express'
import Koa from 'koa'
import { describe, expect, test, vi } from 'vitest'
import { type Exchange, type Served, serve } from '../../packages/core/test/server/host.ts'
import { aborted, forever } from '../../packages/core/test/server/waiting.ts'
import { warningsOf } from '../../packages/core/test/server/warnings.ts'
import { listenOn } from '../../packages/core/test/server/node-http.ts'
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

async function listening(server: Server): Promise<{ readonly port: number } & AsyncDisposable> {
  const { port, close } = await listenOn(server)
  return { port, [Symbol.asyncDispose]: close }
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

  test('in the middle of a body that is being read is told to nobody as a failure', async () => {
    await using server = await serve(host, { handler: () => 'done', parsesJson: true })
    using client = await RawClient.to({ port: server.port, host: 'localhost' })
    client.send(`${head.replace('text/plain', 'application/json')}\r\n{"a":`)
    await server.started.nth(1)
    // an answer shows that the other connection has been read up to here
    using next = await RawClient.to({ port: server.port, host: 'localhost' })
    next.get('/')
    await next.answered()
    const warnings = await warningsOf(async () => {
      client.reset()
      expect(await server.finished.nth(2)).toMatchObject({ outcome: 'client_closed' })
      next.get('/')
      expect(await next.answered(2)).toMatchObject([{ body: 'done' }, { body: 'done' }])
    })
    expect(warnings).toEqual([])
    expect(server.entered.all).toHaveLength(2)
  })
})

test('an Express application logs no error when a client resets the body that is parsed', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  const app = express()
  app.set('env', 'production')
  const ends: unknown[] = []
  app.use(expressDeadline(), express.text({ type: '*/*' }))
  app.use((error: unknown, _request: unknown, _response: unknown, next: (error: unknown) => void) => {
    ends.push(error)
    next(error)
  })
  app.use(deadlineErrors())
  await using server = await listening(createServer(app))
  using client = await RawClient.to({ port: server.port, host: 'localhost' })
  client.send(`${head}\r\n12345`)
  using next = await RawClient.to({ port: server.port, host: 'localhost' })
  next.get('/')
  await next.answered()
  client.reset()
  await expect.poll(() => ends).toMatchObject([{ type: 'request.aborted' }])
  next.get('/')
  await next.answered(2)
  expect(logged).not.toHaveBeenCalled()
  logged.mockRestore()
})

test('a Koa application hears of no error when a client resets the body that it reads itself', async () => {
  const app = new Koa()
  const errors: unknown[] = []
  const ends: unknown[] = []
  app.on('error', (error) => errors.push(error))
  app.use(deadline())
  app.use(async (context) => {
    try {
      for await (const _chunk of context.req);
    } catch (error) {
      ends.push(error)
      throw error
    }
  })
  await using server = await listening(createServer(app.callback()))
  using client = await RawClient.to({ port: server.port, host: 'localhost' })
  client.send(`${head}\r\n12345`)
  using next = await RawClient.to({ port: server.port, host: 'localhost' })
  next.get('/')
  expect(await next.answered()).toMatchObject([{ status: 404 }])
  client.reset()
  await expect.poll(() => ends).toMatchObject([{ code: 'ECONNRESET' }])
  next.get('/')
  await next.answered(2)
  expect(errors).toEqual([])
})
