import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { begin, call, connection } from '../client.ts'
import { type Handler, type Host, serve } from '../host.ts'

const showBudget: Handler = ({ deadline }) => String(Math.ceil(deadline.budget))

/** How a request comes by its budget, and when it is refused on arrival. */
export function arrivalContract(host: Host): void {
  describe('the budget of a request', () => {
    test('is the default where the caller says nothing', async () => {
      await using server = await serve(host, { handler: showBudget, options: { default: '1.2s' } })
      expect(await call(server)).toMatchObject({ status: 200, body: '1200' })
      expect(await server.finished.nth(1)).toMatchObject({
        source: 'default',
        clamped: false,
        outcome: 'ok',
        status: 200,
      })
    })

    test('is five seconds without any options', async () => {
      await using server = await serve(host, { handler: showBudget })
      expect(await call(server)).toMatchObject({ status: 200, body: '5000' })
    })

    test('is what the caller has left', async () => {
      await using server = await serve(host, { handler: showBudget })
      const headers = { 'x-request-timeout-ms': '700' }
      expect(await call(server, { headers })).toMatchObject({ status: 200, body: '700' })
      expect(await server.finished.nth(1)).toMatchObject({ source: 'header', clamped: false })
    })

    test('knows which attempt its caller says it is', async () => {
      await using server = await serve(host, { handler: ({ deadline }) => String(deadline.attempt) })
      expect(await call(server)).toMatchObject({ body: '1' })
      expect(await call(server, { headers: { 'x-request-attempt': '3' } })).toMatchObject({ body: '3' })
      expect(await call(server, { headers: { 'x-request-attempt': 'many' } })).toMatchObject({ body: '1' })
    })

    test('takes no word of a stranger about attempts', async () => {
      await using server = await serve(host, {
        handler: ({ deadline }) => String(deadline.attempt),
        options: { trust: 'ignore' },
      })
      expect(await call(server, { headers: { 'x-request-attempt': '3' } })).toMatchObject({ body: '1' })
    })

    test('is never more than max, whatever the headers say', async () => {
      await using server = await serve(host, { handler: showBudget, options: { max: '30s' } })
      const farthest: Record<string, string>[] = [
        { 'x-request-timeout-ms': '9999999999' },
        { 'x-request-deadline': '9999999999999' },
        { 'grpc-timeout': '99999999H' },
        { 'connect-timeout-ms': '2147483648' },
      ]
      for (const headers of farthest) expect(await call(server, { headers })).toMatchObject({ body: '30000' })
      expect(server.finished.all.every(({ clamped }) => clamped)).toBe(true)
    })

    test('may be longer than the longest timer of Node', async () => {
      const handler: Handler = async ({ deadline }) => {
        await sleep(100)
        return String(deadline.signal.aborted)
      }
      await using server = await serve(host, { handler, options: { max: '90d' } })
      const headers = { 'x-request-timeout-ms': String(60 * 86_400_000) }
      expect(await call(server, { headers })).toMatchObject({ status: 200, body: 'false' })
    })

    test('ends by the reserve before that of the caller', async () => {
      await using server = await serve(host, { handler: showBudget, options: { reserve: 300 } })
      expect(await call(server, { headers: { 'x-request-timeout-ms': '1000' } })).toMatchObject({
        body: '700',
      })
    })

    test('is read from the accepted headers only', async () => {
      await using server = await serve(host, { handler: showBudget, options: { accept: ['grpc-timeout'] } })
      const headers = { 'x-request-timeout-ms': '700', 'grpc-timeout': '900m' }
      expect(await call(server, { headers })).toMatchObject({ body: '900' })
    })

    test('is not up to a caller who is not trusted', async () => {
      await using server = await serve(host, { handler: showBudget, options: { trust: 'ignore' } })
      expect(await call(server, { headers: { 'x-request-timeout-ms': '0' } })).toMatchObject({
        status: 200,
        body: '5000',
      })
    })

    test('is up to those callers whom a function trusts, and to none if it fails', async () => {
      const trust: (request: { headers: Record<string, unknown> }) => 'clamp' | 'ignore' = ({ headers }) => {
        if (headers['x-fail'] !== undefined) throw new Error('no decision')
        return headers['x-inside'] === 'yes' ? 'clamp' : 'ignore'
      }
      await using server = await serve(host, { handler: showBudget, options: { trust } })
      const headers = { 'x-request-timeout-ms': '700' }
      expect(await call(server, { headers })).toMatchObject({ body: '5000' })
      expect(await call(server, { headers: { ...headers, 'x-inside': 'yes' } })).toMatchObject({
        body: '700',
      })
      expect(await call(server, { headers: { ...headers, 'x-fail': 'yes' } })).toMatchObject({
        status: 200,
        body: '5000',
      })
    })
  })

  describe('a request that cannot be answered in time', () => {
    test('is answered on arrival, and its handler is not entered', async () => {
      await using server = await serve(host, { handler: showBudget })
      const reply = await call(server, { headers: { 'x-request-timeout-ms': '0' } })
      expect(reply.status).toBe(504)
      expect(reply.headers).toMatchObject({
        'x-deadline-outcome': 'deadline_exceeded',
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
      })
      expect(JSON.parse(reply.body)).toMatchObject({
        type: 'about:blank',
        title: 'Gateway Timeout',
        status: 504,
        code: 'DEADLINE_EXCEEDED',
        outcome: 'deadline_exceeded',
        remaining: 0,
      })
      expect(server.entered.all).toHaveLength(0)
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
    })

    test('is refused if less than the floor is left', async () => {
      await using server = await serve(host, { handler: showBudget, options: { floor: '400ms' } })
      const reply = await call(server, { headers: { 'x-request-timeout-ms': '399' } })
      expect(reply.status).toBe(504)
      expect(reply.headers['x-deadline-outcome']).toBe('short_circuited')
      expect(JSON.parse(reply.body)).toMatchObject({ code: 'BUDGET_TOO_SMALL', remaining: 399 })
      expect(server.entered.all).toHaveLength(0)
      expect(await call(server, { headers: { 'x-request-timeout-ms': '400' } })).toMatchObject({
        status: 200,
      })
    })

    test('is refused by what a learned floor says at that moment', async () => {
      let learned = 100
      await using server = await serve(host, {
        handler: showBudget,
        options: { floor: { current: () => learned } },
      })
      const headers = { 'x-request-timeout-ms': '500' }
      expect(await call(server, { headers })).toMatchObject({ status: 200 })
      learned = 600
      expect(await call(server, { headers })).toMatchObject({ status: 504 })
    })

    test('is refused if the reserve takes all that is left', async () => {
      await using server = await serve(host, { handler: showBudget, options: { reserve: 300 } })
      const reply = await call(server, { headers: { 'x-request-timeout-ms': '300' } })
      expect(reply).toMatchObject({ status: 504, headers: { 'x-deadline-outcome': 'short_circuited' } })
      expect(server.entered.all).toHaveLength(0)
    })

    test('gets its 504 even if the default leaves it no time at all', async () => {
      await using server = await serve(host, {
        handler: () => new Promise(() => {}),
        options: { default: 0 },
      })
      expect(await call(server)).toMatchObject({ status: 504 })
      expect(server.entered.all).toHaveLength(0)
    })

    test('costs its caller no connection, unless the rest of its body is still to come', async () => {
      await using server = await serve(host, { handler: showBudget })
      const kept = connection(server)
      const headers = { 'x-request-timeout-ms': '0' }
      for (const isReused of [false, true, true].map((isLater) => isLater || host.protocol === 'h2'))
        expect(await call(server, { headers, connection: kept })).toMatchObject({ status: 504, isReused })
      if (host.protocol === 'http/1.1') {
        const { reply } = begin(server, { headers, isUploading: true, connection: kept })
        expect(await reply).toMatchObject({ status: 504, headers: { connection: 'close' } })
      }
      kept.close()
    })

    test('gets no body if it asked with HEAD', async () => {
      await using server = await serve(host, { handler: showBudget })
      const reply = await call(server, { method: 'HEAD', headers: { 'x-request-timeout-ms': '0' } })
      expect(reply).toMatchObject({
        status: 504,
        body: '',
        headers: { 'x-deadline-outcome': 'deadline_exceeded' },
      })
      expect(await call(server, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
    })
  })
}
