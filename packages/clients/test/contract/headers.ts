import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { Deadline, operation } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { failureOf, pause, underDeadline } from '../support/calls.ts'
import { serveHttp, serveUnderDeadline } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'

const absolute = 'x-request-deadline'
const relative = 'x-request-timeout-ms'

/** How often a header was sent, whatever its case. */
function timesSent(request: IncomingMessage, name: string): number {
  return request.rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === name).length
}

/** What a client writes on the wire. */
export function headersContract(client: ClientUnderTest): void {
  test('the call carries what is left, in both headers, each once', async () => {
    const seen: IncomingMessage[] = []
    await using server = await serveHttp((request, response) => {
      seen.push(request)
      response.end('done')
    })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const handSet = { 'X-Request-Deadline': '1', 'x-request-timeout-ms': '777' }
      await (await governed.call(server.url, { headers: { 'x-own': 'kept', ...handSet } })).text()
      const [request] = seen
      if (request === undefined) throw new Error('nothing arrived')
      expect(timesSent(request, absolute)).toBe(1)
      expect(timesSent(request, relative)).toBe(1)
      expect(request.headers[absolute]).toBe(String(deadline.expiresAt))
      const left = Number(request.headers[relative])
      expect(left).toBeGreaterThan(deadline.remaining())
      expect(left).toBeLessThanOrEqual(5_000)
      expect(request.headers['x-own']).toBe('kept')
    })
  })

  test('a call in a later attempt says so, once, and a first attempt says nothing', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    await underDeadline(5_000, async () => {
      const callOnce = (attempt: number): Promise<string> =>
        operation('retrieve', { attempt }, async () =>
          (await governed.call(upstream.url, { headers: { 'X-Request-Attempt': '9' } })).text(),
        )
      for (const attempt of [1, 2]) await callOnce(attempt)
    })
    expect(upstream.requests.map(({ headers }) => headers['x-request-attempt'])).toEqual([undefined, '2'])
  })

  test('a hop sends on the very moment that it received', async () => {
    await using leaf = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    await using hop = await serveUnderDeadline(async (_request, response) => {
      response.end(await (await governed.call(leaf.url)).text())
    })
    const moment = Date.now() + 3_000
    await fetch(hop.url, { headers: { [absolute]: String(moment), [relative]: '3000' } })
    expect(leaf.requests[0]?.headers[absolute]).toBe(String(moment))
  })

  test.each([
    { name: 'the own timeout, if the request has more', budget: 5_000, timeout: 800 },
    { name: 'what the request has left, if the own timeout is more', budget: 800, timeout: 5_000 },
  ])('what is sent is $name', async ({ budget, timeout }) => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({ timeout })
    const soonest = Date.now() + 798 // what two readings of a clock of whole milliseconds differ by
    await underDeadline(budget, async () => (await governed.call(upstream.url)).text())
    const { headers } = await upstream.nextRequest()
    expect(Number(headers[relative])).toBeLessThanOrEqual(800)
    expect(Number(headers[absolute])).toBeGreaterThanOrEqual(soonest)
    expect(Number(headers[absolute])).toBeLessThan(soonest + 2_000)
  })

  test('an operation around the call that has less left decides', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({ timeout: 4_000 })
    await underDeadline(5_000, () =>
      operation('retrieve', { timeout: 700 }, async () => (await governed.call(upstream.url)).text()),
    )
    const { headers } = await upstream.nextRequest()
    expect(Number(headers[relative])).toBeLessThanOrEqual(700)
  })

  test('what is sent is whole and more than nothing, however short and fractional the budget', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    const budgets = [10_000.5, ...Array.from({ length: 30 }, (_, index) => 10.5 + index / 8)]
    await Promise.all(
      budgets.map((budget) =>
        underDeadline(budget, () =>
          governed
            .call(upstream.url)
            .then((answer) => answer.text())
            .catch(() => ''),
        ),
      ),
    )
    expect(upstream.requests.length).toBeGreaterThan(0)
    for (const { headers } of upstream.requests) {
      expect(headers[relative]).toMatch(/^[1-9]\d*$/)
      expect(headers[absolute]).toMatch(/^\d{13}$/)
    }
  })

  test('a timeout alone is sent as well as kept', async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({ timeout: 300 })
    const failure = await failureOf(governed.call(upstream.url).then((answer) => answer.text()))
    expect(failure).toBeDefined()
    const { headers } = await upstream.nextRequest()
    expect(Number(headers[relative])).toBeLessThanOrEqual(300)
    expect(headers[absolute]).toMatch(/^\d{13}$/)
  })

  test('without a deadline and a timeout nothing is written', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    expect(await (await governed.call(upstream.url, { headers: { [relative]: '777' } })).text()).toBe('done')
    const { headers } = await upstream.nextRequest()
    expect(headers[absolute]).toBeUndefined()
    expect(headers[relative]).toBe('777')
  })

  test('one client gives each request its own deadline', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    for (let request = 0; request < 3; request += 1) {
      await underDeadline(250, async () => (await governed.call(upstream.url)).text())
      await pause(250)
    }
    const sent = upstream.requests.map(({ headers }) => Number(headers[absolute]))
    expect(sent).toHaveLength(3)
    expect(sent[2]).toBeGreaterThan((sent[0] ?? 0) + 490)
    for (const { headers } of upstream.requests) expect(Number(headers[relative])).toBeGreaterThan(0)
  })

  test.each([
    { rule: 'false', propagateTo: () => false, isSent: false },
    { rule: 'a pattern of another host', propagateTo: () => ['*.internal', '10.0.0.7'], isSent: false },
    { rule: 'a pattern of the host', propagateTo: (host: string) => ['*.internal', host], isSent: true },
    { rule: 'a pattern without the port', propagateTo: () => ['127.0.0.1'], isSent: true },
    {
      rule: 'a function that says no',
      propagateTo: () => (url: URL) => url.pathname !== '/search',
      isSent: false,
    },
    {
      rule: 'a function that says yes',
      propagateTo: () => (url: URL) => url.pathname === '/search',
      isSent: true,
    },
  ])('propagateTo as $rule: sent $isSent, kept in any case', async ({ propagateTo, isSent }) => {
    await using server = await serveHttp((request, response) =>
      response.end(String(request.headers[absolute] !== undefined)),
    )
    await using governed = client.govern({ propagateTo: propagateTo(server.host) })
    await underDeadline(2_000, async (deadline) => {
      expect(await (await governed.call(`${server.url}search?q=1`)).text()).toBe(String(isSent))
      expect(deadline.ledger.entries).toMatchObject([{ name: client.operation, outcome: 'ok' }])
    })
  })

  test('emit names what is written', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({ emit: ['grpc-timeout'] })
    await underDeadline(2_000, async () => (await governed.call(upstream.url)).text())
    const { headers } = await upstream.nextRequest()
    expect(headers['grpc-timeout']).toMatch(/^\d{1,8}[munSMH]$/)
    expect(headers[absolute]).toBeUndefined()
  })

  test('a budget without an end is not written', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    await underDeadline(Infinity, async () => (await governed.call(upstream.url)).text())
    const { headers } = await upstream.nextRequest()
    expect(headers[absolute]).toBeUndefined()
    expect(headers[relative]).toBeUndefined()
  })

  test.runIf(client.isBounded)(
    'two requests that share one connection each send their own deadline',
    async () => {
      const seen: Array<{ left: number; arrived: number }> = []
      await using server = await serveHttp((request, response) => {
        seen.push({ left: Number(request.headers[relative]), arrived: Date.now() })
        setTimeout(() => response.end('done'), 150)
      })
      await using governed = client.govern({ connections: 1 })
      const callUnder = (deadline: Deadline): Promise<string> =>
        underDeadline(deadline.remaining(), async () => (await governed.call(server.url)).text(), {
          parent: deadline,
        })
      const [long, short] = [Deadline.after(60_000), Deadline.after(900)]
      await Promise.all([callUnder(long), callUnder(short)])
      expect(seen[0]?.left).toBeGreaterThan(50_000)
      expect(seen[1]?.left).toBeLessThanOrEqual(900)
    },
  )
}
