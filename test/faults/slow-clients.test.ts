import { describe, expect, test } from 'vitest'
import { type Exchange, serve } from '../../packages/core/test/server/host.ts'
import { aborted, forever } from '../../packages/core/test/server/waiting.ts'
import { hosts } from './hosts.ts'
import { Link } from './link.ts'
import { RawClient } from './raw-client.ts'

const budget = 500
const head = `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Timeout-Ms: ${budget}\r\n`

/** Sends a little of it every now and then, until nobody takes it any more. */
function drip(client: RawClient, piece: string): void {
  const timer = setInterval(() => {
    if (client.socket.writable) client.send(piece)
    else clearInterval(timer)
  }, 20)
  client.socket.on('close', () => clearInterval(timer))
}

describe.each(hosts)('a slow client: $name', (host) => {
  const uploads = {
    'with a declared length': { begin: `${head}Content-Length: 100000\r\n\r\n{"text":"`, piece: 'x' },
    'in chunks': { begin: `${head}Transfer-Encoding: chunked\r\n\r\n`, piece: '1\r\n[\r\n' },
  }

  test.each(Object.entries(uploads))(
    'whose body drips in, %s, is answered at the deadline and let go',
    async (_how, { begin, piece }) => {
      await using server = await serve(host, { handler: () => 'done', parsesJson: true })
      const { port } = server
      using client = await RawClient.to({ port, host: 'localhost' })
      const began = performance.now()
      client.send(begin)
      drip(client, piece)
      using neighbour = await RawClient.to({ port, host: 'localhost' })
      neighbour.get('/')
      expect(await neighbour.answered()).toMatchObject([{ status: 200, body: 'done' }])

      await client.closed()
      const after = performance.now() - began
      expect(after).toBeGreaterThan(budget - 50)
      expect(after).toBeLessThan(budget + 2_500)
      expect(client.answers).toMatchObject([{ status: 504, headers: { connection: 'close' }, isWhole: true }])
      await server.finished.nth(2)
      expect(new Set(server.finished.all.map(({ status }) => status))).toEqual(new Set([200, 504]))
      expect(server.entered.all).toHaveLength(1)
    },
  )

  test('whose headers drip in has no request yet, and keeps nobody else waiting', async () => {
    await using server = await serve(host, { handler: () => 'done' })
    const { port } = server
    const clients = await Promise.all(
      Array.from({ length: 30 }, () => RawClient.to({ port, host: 'localhost' })),
    )
    for (const client of clients) {
      client.send('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ')
      drip(client, 'x')
    }
    using neighbour = await RawClient.to({ port, host: 'localhost' })
    for (let count = 1; count <= 20; count += 1) {
      neighbour.get('/', { 'X-Request-Timeout-Ms': 2_000 })
      expect((await neighbour.answered(count)).at(-1)).toMatchObject({ status: 200, body: 'done' })
    }
    expect(server.started.all).toHaveLength(20)
    for (const client of clients) client.reset()
    await Promise.all(clients.map((client) => client.closed()))
    expect(server.started.all).toHaveLength(20)
    expect(server.finished.all.map(({ outcome }) => outcome)).toEqual(Array(20).fill('ok'))
  })

  const vanishings = {
    'in the middle of its upload': {
      isRaw: false,
      sent: `${head}Content-Length: 1000\r\n\r\n{`,
      seen: () => true,
    },
    'while it waits': { isRaw: false, sent: `${head}Content-Length: 2\r\n\r\n{}`, seen: () => true },
    'in the middle of its answer': {
      isRaw: true,
      sent: `${head}Content-Length: 2\r\n\r\n{}`,
      seen: (client: RawClient) => client.received.includes('half'),
    },
  }

  test.each(Object.entries(vanishings))(
    'that vanishes without a word, %s, is let go at the deadline',
    async (_when, { isRaw, sent, seen }) => {
      const handler = async ({ response }: Exchange): Promise<unknown> => {
        if (isRaw) response.write('half')
        return forever()
      }
      await using server = await serve(host, { handler, isRaw })
      await using link = await Link.to(server.port, 'localhost')
      using client = await RawClient.to({ port: link.port })
      client.send(sent)
      const { deadline } = await server.entered.nth(1)
      await client.until(seen)
      link.cut()
      const before = link.hungUp.far
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded' })
      expect(await aborted(deadline.signal)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      // whose request is whole gets an answer, and could ask again
      if (sent.endsWith('{}') && !isRaw) return
      await expect.poll(() => link.hungUp.far).toBeGreaterThan(before)
    },
  )

  test('that reads nothing of a long answer is let go at the deadline, and cannot take it for whole', async () => {
    const handler = ({ response }: Exchange): undefined => {
      const write = (): void => {
        while (response.write('x'.repeat(100_000)));
        response.once('drain', write)
      }
      write()
    }
    await using server = await serve(host, { handler, isRaw: true })
    using client = await RawClient.to({ port: server.port, host: 'localhost' })
    client.socket.pause()
    client.get('/', { 'X-Request-Timeout-Ms': budget })
    expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 200 })
    client.socket.resume()
    await client.closed()
    expect(client.received.length).toBeGreaterThan(100_000)
    expect(client.received).not.toMatch(/\r\n0\r\n\r\n$/)
  })
})
