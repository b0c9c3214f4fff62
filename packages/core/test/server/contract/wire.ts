import { describe, expect, test } from 'vitest'
import { skewMeasured } from '@timebudget/core'
import { call } from '../client.ts'
import { type Handler, type Host, serve } from '../host.ts'

const showBudget: Handler = ({ deadline }) => String(Math.ceil(deadline.budget))
const minutes = 60_000

/** What strangers' headers and strangers' clocks may and may not do. */
export function wireContract(host: Host): void {
  describe('clocks', () => {
    test('that are ten minutes apart change nothing where both headers are there', async () => {
      await using server = await serve(host, { handler: showBudget })
      const skews: number[] = []
      const stop = skewMeasured.subscribe(({ skew }) => skews.push(skew))
      for (const apart of [-10 * minutes, 10 * minutes]) {
        const headers = {
          'x-request-deadline': String(Date.now() + apart + 800),
          'x-request-timeout-ms': '800',
        }
        expect(await call(server, { headers })).toMatchObject({ status: 200, body: '800' })
      }
      stop()
      expect(skews[0]).toBeGreaterThan(9 * minutes)
      expect(skews[1]).toBeLessThan(-9 * minutes)
    })

    test('that are far apart kill a request that carries the absolute header alone, and the answer shows why', async () => {
      await using server = await serve(host, { handler: showBudget })
      const deadline = Date.now() - 5 * minutes
      const reply = await call(server, { headers: { 'x-request-deadline': String(deadline) } })
      expect(reply.status).toBe(504)
      const problem = JSON.parse(reply.body)
      expect(problem).toMatchObject({ code: 'DEADLINE_EXCEEDED', deadline })
      expect(problem.serverNow - problem.deadline).toBeGreaterThanOrEqual(5 * minutes)
      expect(server.entered.all).toHaveLength(0)
    })

    test('may be off by the tolerance', async () => {
      await using server = await serve(host, { handler: showBudget, options: { skewTolerance: '10m' } })
      const headers = { 'x-request-deadline': String(Date.now() - 5 * minutes) }
      expect(await call(server, { headers })).toMatchObject({ status: 200 })
    })
  })

  describe('a header that cannot be read', () => {
    const unreadable: readonly Readonly<Record<string, string | string[]>>[] = [
      { 'x-request-timeout-ms': '-1' },
      { 'x-request-timeout-ms': '+5' },
      { 'x-request-timeout-ms': '1e3' },
      { 'x-request-timeout-ms': '5.0' },
      { 'x-request-timeout-ms': '0x10' },
      { 'x-request-timeout-ms': '' },
      { 'x-request-timeout-ms': '99999999999' },
      { 'x-request-timeout-ms': 'soon' },
      { 'x-request-timeout-ms': '__proto__' },
      { 'x-request-timeout-ms': ['soon', 'sooner'] },
      { 'x-request-timeout-ms': ','.repeat(3000) },
      { 'x-request-deadline': String(Math.round(Date.now() / 1000)) },
      { 'x-request-deadline': '5000' },
      { 'x-request-deadline': 'NaN' },
      { 'grpc-timeout': '-5S' },
      { 'grpc-timeout': '1.5S' },
      { 'connect-timeout-ms': '-1' },
      { 'x-envoy-expected-rq-timeout-ms': '1 000' },
    ]

    test('is ignored and counted, whatever is in it', async () => {
      await using server = await serve(host, { handler: showBudget })
      for (const headers of unreadable) {
        const { status, body } = await call(server, { headers })
        expect({ headers, status, body }).toEqual({ headers, status: 200, body: '5000' })
      }
      expect(server.malformed.all).toHaveLength(unreadable.length)
      expect(server.malformed.all[0]).toMatchObject({ header: 'x-request-timeout-ms', value: '-1' })
    })

    test('is answered with 400 where the options ask for it', async () => {
      await using server = await serve(host, { handler: showBudget, options: { malformed: 'reject' } })
      for (const headers of unreadable) {
        const reply = await call(server, { headers })
        expect({ headers, status: reply.status }).toEqual({ headers, status: 400 })
        expect(JSON.parse(reply.body)).toMatchObject({ status: 400, header: Object.keys(headers)[0] })
      }
      expect(server.entered.all).toHaveLength(0)
      expect(await call(server)).toMatchObject({ status: 200 })
    })

    test('does not spoil another one that can', async () => {
      await using server = await serve(host, { handler: showBudget })
      const headers = { 'x-request-timeout-ms': ['soon', '900', '700'], 'x-request-deadline': 'never' }
      expect(await call(server, { headers })).toMatchObject({ status: 200, body: '700' })
    })
  })

  test('a header given twice counts by its earliest value', async () => {
    await using server = await serve(host, { handler: showBudget })
    const headers = { 'x-request-timeout-ms': ['900', '700', '800'] }
    expect(await call(server, { headers })).toMatchObject({ status: 200, body: '700' })
  })

  test('of several dialects the earliest counts', async () => {
    await using server = await serve(host, { handler: showBudget })
    const headers = { 'x-request-timeout-ms': '900', 'grpc-timeout': '600m', 'connect-timeout-ms': '800' }
    expect(await call(server, { headers })).toMatchObject({ status: 200, body: '600' })
  })
}
