import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerOptions } from '@timebudget/core/server'
import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import { begin, type Call, call, connection } from '../client.ts'
import { type Handler, type Host, type Served, serve } from '../host.ts'
import { aborted, forever } from '../waiting.ts'

const options = { default: '10s' }
const json = { 'content-type': 'application/json' }

interface Scene {
  readonly call?: Call
  readonly parsesJson?: boolean
  readonly isRaw?: boolean
  readonly handler?: Handler
}

const eventStream: Handler = async ({ response, deadline }) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: 1\n\n')
  await aborted(deadline.signal)
}

const scenes: Readonly<Record<string, Scene>> = {
  'a request without a body': {},
  'a request whose body has been parsed': { call: { headers: json, body: '{"a":1}' }, parsesJson: true },
  'a request whose body has been read': {
    call: { body: 'x'.repeat(1000) },
    isRaw: true,
    async handler({ request }) {
      for await (const _chunk of request);
      await forever()
    },
  },
  'a half-uploaded body that nobody reads': { call: { isUploading: true }, isRaw: true },
  'a half-uploaded body that is being read': {
    call: { isUploading: true },
    isRaw: true,
    handler({ request }) {
      request.on('data', () => {})
      return forever()
    },
  },
  'an event stream': { isRaw: true, handler: eventStream },
}

async function expectClientClosed(server: Served): Promise<void> {
  const { deadline } = await server.started.nth(1)
  expect(await aborted(deadline.signal)).toMatchObject({ code: 'CLIENT_CLOSED', status: 499 })
  const finished = await server.finished.nth(1)
  expect(finished).toMatchObject({ outcome: 'client_closed' })
  expect(finished.goneBy).toMatch(server.protocol === 'h2' ? /^h2_rst_8$/ : /^client_(fin|reset)$/)
}

/** A user who leaves is no failure, and one who does not is never taken for one. */
export function clientLeavesContract(host: Host): void {
  describe('law 10: a client that leaves', () => {
    const everyScene = Object.entries(scenes).flatMap(([name, scene]) => [
      [name, { scene, ambient: true }] as const,
      [`${name}, without an ambient context`, { scene, ambient: false }] as const,
    ])
    test.each(everyScene)('ends %s', async (_name, { scene, ambient }) => {
      const handler = scene.handler ?? forever
      await using server = await serve(host, { ...scene, handler, options: { ...options, ambient } })
      const calling = begin(server, scene.call)
      if (scene.call?.isUploading === true) calling.write('half')
      await server.entered.nth(1)
      if (scene.handler === eventStream) await calling.firstPart
      calling.leave()
      await expectClientClosed(server)
      await call(server, { headers: { 'x-request-timeout-ms': '0' } })
      expect(server.finished.all.map(({ outcome }) => outcome)).toEqual([
        'client_closed',
        'deadline_exceeded',
      ])
      expect((await server.finished.nth(1)).status).toBe(scene.handler === eventStream ? 200 : undefined)
    })

    test('gets nothing of what a handler says that takes no notice', async () => {
      const handler: Handler = async ({ deadline }) => {
        await aborted(deadline.signal)
        await sleep(10)
        return 'late'
      }
      await using server = await serve(host, { handler, options })
      const calling = begin(server)
      await server.entered.nth(1)
      calling.leave()
      await server.late.nth(1)
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'client_closed', status: undefined })
    })

    test('ends its request without error if the handler heeds the signal', async () => {
      const handler: Handler = async ({ deadline }) => {
        throw await aborted(deadline.signal)
      }
      await using server = await serve(host, { handler, options })
      const calling = begin(server)
      await server.entered.nth(1)
      calling.leave()
      await expectClientClosed(server)
    })

    for (const ambient of [true, false]) {
      const title = `ends every request that it had sent ahead${ambient ? '' : ', without an ambient context'}`
      test.runIf(host.protocol === 'http/1.1')(title, async () => {
        await using server = await serve(host, { handler: forever, options: { ...options, ambient } })
        const socket = connect(server.port, 'localhost')
        socket.write('GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\n')
        await server.entered.nth(2)
        socket.destroy()
        await server.finished.nth(2)
        expect(server.finished.all.map(({ outcome }) => outcome)).toEqual(['client_closed', 'client_closed'])
      })
    }
  })

  describe('a client that leaves a moment before the end', () => {
    interface Leaving {
      readonly options?: ServerOptions
      readonly inner?: ServerOptions
      readonly headers?: Readonly<Record<string, string>>
      readonly left: number
    }

    /** One that leaves when so many milliseconds of its second are left; the server has noticed. */
    async function leave({ options = {}, inner, headers, left }: Leaving) {
      const clock = new ManualClock()
      const server = await serve(host, {
        handler: forever,
        options: { ...options, clock },
        ...(inner === undefined ? {} : { inner }),
      })
      const calling = begin(server, headers === undefined ? {} : { headers })
      const { deadline, response } = await server.entered.nth(1)
      clock.advance(1_000 - left)
      const noticed = once(response, 'close')
      calling.leave()
      await noticed
      return { server, clock, deadline }
    }
    const headers = { 'x-request-timeout-ms': '1000' }

    test('of its own deadline ends as that does, at its deadline', async () => {
      const { server, clock, deadline } = await leave({ headers, left: 20 })
      await using _ = server
      expect(deadline.signal.aborted).toBe(false)
      expect(server.finished.all).toEqual([])
      clock.advance(20)
      expect(deadline.signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(await server.finished.nth(1)).toMatchObject({
        outcome: 'deadline_exceeded',
        status: undefined,
        goneBy: undefined,
      })
    })

    const others: Readonly<Record<string, Leaving>> = {
      'has more than the tolerance left': { headers, left: 51 },
      'has more left than a tolerance of its server': { options: { skewTolerance: 10 }, headers, left: 20 },
      'brought no deadline': { options: { default: '1s' }, left: 20 },
      'asked for more than it was given': {
        options: { max: '1s' },
        headers: { 'x-request-timeout-ms': '5000' },
        left: 20,
      },
      'has time left that its server keeps back': {
        options: { reserve: 100 },
        headers: { 'x-request-timeout-ms': '1100' },
        left: 20,
      },
      'has time left that a route does not have': {
        inner: { default: '1s' },
        headers: { 'x-request-timeout-ms': '5000' },
        left: 20,
      },
    }
    test.each(Object.entries(others))('but %s has left for itself, at once', async (_name, leaving) => {
      const { server, deadline } = await leave(leaving)
      await using _ = server
      expect(deadline.signal.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'client_closed' })
    })
  })

  describe('law 2: a client that stays', () => {
    const quick: Handler = () => 'quick'
    const expectNoAbort = (server: Served): void => {
      for (const { deadline } of server.entered.all) expect(deadline.signal.aborted).toBe(false)
      expect(new Set(server.finished.all.map(({ outcome }) => outcome))).toEqual(new Set(['ok']))
    }

    test('never aborts a signal, over one connection to its end', async () => {
      const handler: Handler = ({ deadline }) => `${deadline.signal.aborted}`
      await using server = await serve(host, { handler, options })
      const kept = connection(server)
      for (let round = 0; round < 20; round += 1) await call(server, { connection: kept })
      const { request } = await server.entered.nth(20)
      const closed = once(kept.session ?? request.socket, 'close')
      kept.close()
      await closed
      expectNoAbort(server)
      expect(server.finished.all).toHaveLength(20)
    })

    test.runIf(host.protocol === 'http/1.1')(
      'never aborts a signal, with twenty requests sent ahead',
      async () => {
        const handler: Handler = async ({ deadline }) => {
          void deadline.signal
          await sleep(10)
          return 'done'
        }
        await using server = await serve(host, { handler, options })
        const socket = connect(server.port, 'localhost')
        socket.resume()
        socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(20))
        await server.finished.nth(20)
        const closed = once((await server.entered.nth(1)).request.socket, 'close')
        socket.end()
        await closed
        expectNoAbort(server)
      },
    )

    test('aborts nothing by having sent a body', async () => {
      const handler: Handler = async ({ deadline }) => {
        void deadline.signal
        await sleep(150)
        return `${deadline.signal.aborted}`
      }
      await using server = await serve(host, { handler, options, parsesJson: true })
      const reply = await call(server, { headers: json, body: '{"a":1}' })
      expect(reply).toMatchObject({ status: 200, body: 'false' })
      expectNoAbort(server)
    })

    test('aborts nothing with an answer that has no body, or a HEAD', async () => {
      const handler: Handler = ({ response, deadline }) => {
        void deadline.signal
        response.writeHead(204).end()
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      expect(await call(server)).toMatchObject({ status: 204 })
      expect(await call(server, { method: 'HEAD' })).toMatchObject({ status: 204 })
      await server.finished.nth(2)
      expectNoAbort(server)
    })

    test('is not blamed for an answer that the server itself breaks off', async () => {
      const handler: Handler = ({ response, deadline }) => {
        void deadline.signal
        response.write('half')
        setTimeout(() => response.destroy(new Error('the source failed')), 20)
        return forever()
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      await expect(call(server)).rejects.toThrow()
      const finished = await server.finished.nth(1)
      if (host.protocol === 'http/1.1')
        expect(finished).toMatchObject({ outcome: 'cancelled', goneBy: undefined })
      const { deadline } = await server.entered.nth(1)
      expect(deadline.signal.aborted).toBe(true)
    })

    test('is served as before after another one has left', async () => {
      await using server = await serve(host, {
        handler: (exchange) => (exchange.request.url === '/hang' ? forever() : quick(exchange)),
        options,
      })
      const calling = begin(server, { path: '/hang' })
      await server.entered.nth(1)
      calling.leave()
      expect(await call(server)).toMatchObject({ status: 200, body: 'quick' })
    })
  })
}
