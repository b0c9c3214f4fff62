import { expect, test } from 'vitest'
import { codesOf, failureOf, onlyEntry, underDeadline } from '../support/calls.ts'
import { serveHttp, serveRaw } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'

const expiredAnswer =
  'HTTP/1.1 504 Gateway Timeout\r\nx-deadline-outcome: deadline_exceeded\r\ncontent-length: 7\r\n\r\nexpired'

/** What a peer says of the time it was given. */
export function peersContract(client: ClientUnderTest): void {
  test('a peer that gives up or hangs up within 5 ms of the deadline never changes what the call fails with', async () => {
    await using server = await serveRaw((socket, head) => {
      const moment = Number(/x-request-deadline: (\d+)/i.exec(head)?.[1])
      const [, run = '0'] = /GET \/(\d+)/.exec(head) ?? []
      const act = (): unknown => (Number(run) % 2 === 0 ? socket.write(expiredAnswer) : socket.destroy())
      setTimeout(act, moment - Date.now() - 5 + (Number(run) % 11))
    })
    await using governed = client.govern({})
    const runs = Array.from({ length: 200 }, (_, run) => run)
    for (let first = 0; first < runs.length; first += 50) {
      await Promise.all(
        runs.slice(first, first + 50).map((run) =>
          underDeadline(200, async (deadline) => {
            const failure = await failureOf(
              governed.call(`${server.url}${run}`).then((answer) => answer.text()),
            )
            expect(codesOf(failure)[0] ?? codesOf(failure)).toBe('DEADLINE_EXCEEDED')
            expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
          }),
        ),
      )
    }
  })

  test("with time left a peer's 504 is passed on and the ledger has the peer's outcome", async () => {
    await using server = await serveHttp((request, response) => {
      response.writeHead(504, { 'x-deadline-outcome': request.url?.slice(1) ?? '' }).end('expired')
    })
    await using governed = client.govern({})
    for (const outcome of ['deadline_exceeded', 'short_circuited', 'first_token_timeout', 'shed']) {
      await underDeadline(5_000, async (deadline) => {
        const answer = await governed.call(`${server.url}${outcome}`)
        expect(answer.status).toBe(504)
        expect(answer.header('x-deadline-outcome')).toBe(outcome)
        expect(await answer.text()).toBe('expired')
        expect(onlyEntry(deadline).outcome).toBe(outcome)
      })
    }
  })

  test('a peer that used up a shorter timeout of ours is an ordinary timeout', async () => {
    await using server = await serveHttp((_request, response) => {
      response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end('expired')
    })
    await using governed = client.govern({ timeout: 1_000 })
    await underDeadline(5_000, async (deadline) => {
      expect(await (await governed.call(server.url)).text()).toBe('expired')
      expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
    })
  })

  test('and close to the end of that timeout it is our own timeout', async () => {
    await using server = await serveRaw((socket, head) => {
      const moment = Number(/x-request-deadline: (\d+)/i.exec(head)?.[1])
      setTimeout(() => socket.write(expiredAnswer), moment - Date.now() - 5)
    })
    await using governed = client.govern({ timeout: 200 })
    await underDeadline(5_000, async (deadline) => {
      const failure = await failureOf(governed.call(server.url).then((answer) => answer.text()))
      expect(codesOf(failure)).toContain('OPERATION_TIMEOUT')
      expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
    })
  })

  test('a 5xx that says nothing of time, or something unknown, is an upstream error that is passed on', async () => {
    await using server = await serveHttp((_request, response) => {
      response.writeHead(503, { 'x-deadline-outcome': '<script>' }).end('busy')
    })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const answer = await governed.call(server.url)
      expect([answer.status, await answer.text()]).toEqual([503, 'busy'])
      expect(onlyEntry(deadline).outcome).toBe('upstream_error')
    })
  })

  test('a 4xx is an answer', async () => {
    await using server = await serveHttp((_request, response) => response.writeHead(404).end('none'))
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const answer = await governed.call(server.url)
      expect([answer.status, await answer.text()]).toEqual([404, 'none'])
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
  })

  test("the peer's Server-Timing stands in the ledger under the call", async () => {
    await using server = await serveHttp((_request, response) => {
      response.setHeader('server-timing', [
        'retrieve;dur=12.3;desc="ok";start=0.4',
        'retrieve.rerank;dur=5;desc="shed"',
      ])
      response.end('done')
    })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      await (await governed.call(server.url)).text()
      expect(deadline.ledger.entries).toMatchObject([
        { path: client.operation, source: 'local', outcome: 'ok' },
        { path: `${client.operation}.retrieve`, source: 'peer', spent: 12.3, outcome: 'ok' },
        {
          path: `${client.operation}.retrieve.rerank`,
          name: 'rerank',
          source: 'peer',
          spent: 5,
          outcome: 'shed',
        },
      ])
    })
  })

  test.each([
    { trust: false, entries: 1 },
    { trust: ['10.0.0.7'], entries: 1 },
    { trust: ['127.0.0.1'], entries: 2 },
    { trust: (url: URL) => url.pathname === '/index', entries: 2 },
  ])('of those whom trust as $trust leaves out nothing is believed', async ({ trust, entries }) => {
    await using server = await serveHttp((_request, response) => {
      response.writeHead(200, { 'server-timing': 'retrieve;dur=12' }).end('done')
    })
    await using governed = client.govern({ trust })
    await underDeadline(5_000, async (deadline) => {
      await (await governed.call(`${server.url}index`)).text()
      expect(deadline.ledger.entries).toHaveLength(entries)
    })
  })

  test('a hostile Server-Timing neither throws nor floods the ledger', async () => {
    const hostile = [
      Array.from({ length: 500 }, (_, index) => `a${index};dur=1`).join(','),
      '"""",;;;===,\\\\";dur="\\',
      'x;dur=-1, y;dur=1e308, z;dur=NaN;start=-5, __proto__;dur=1, constructor;desc="running"',
      `${'é'.repeat(50)};dur=2;desc="${'d'.repeat(500)}`,
    ]
    let turn = 0
    await using server = await serveHttp((_request, response) => {
      response
        .writeHead(200, { 'server-timing': Buffer.from(hostile[turn] ?? '').toString('latin1') })
        .end('done')
      turn += 1
    })
    await using governed = client.govern({})
    for (const _ of hostile) {
      await underDeadline(5_000, async (deadline) => {
        expect(await (await governed.call(server.url)).text()).toBe('done')
        expect(deadline.ledger.entries.length).toBeLessThanOrEqual(65)
        for (const { spent, path } of deadline.ledger.entries) {
          expect(spent ?? 0).toBeGreaterThanOrEqual(0)
          expect(path).toMatch(/^[!-~]+$/)
        }
      })
    }
  })

  test('operation names the call in the ledger, as a text or by a function', async () => {
    await using server = await serveHttp((_request, response) => response.end('done'))
    for (const operation of ['generate', () => 'generate']) {
      await using governed = client.govern({ operation })
      await underDeadline(5_000, async (deadline) => {
        await (await governed.call(server.url)).text()
        expect(onlyEntry(deadline)).toMatchObject({ name: 'generate', path: 'generate' })
      })
    }
  })
}
