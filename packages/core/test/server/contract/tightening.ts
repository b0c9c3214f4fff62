import type { ServerOptions } from '@timebudget/core/server'
import { describe, expect, test } from 'vitest'
import { currentDeadline } from '@timebudget/core'
import { call } from '../client.ts'
import { type Exchange, type Host, serve } from '../host.ts'
import { aborted, forever } from '../waiting.ts'
import { warningsOf } from '../warnings.ts'

/** A second deadline() within the first. */
export function tighteningContract(host: Host): void {
  describe('a second deadline() on the way to a handler', () => {
    const show = ({ deadline }: Exchange): string => String(Math.round(deadline.budget / 100) * 100)

    test('gives less time', async () => {
      const handler = (exchange: Exchange): string =>
        `${show(exchange)} ${currentDeadline() === exchange.deadline}`
      await using server = await serve(host, {
        handler,
        options: { default: '3s' },
        inner: { default: '800ms' },
      })
      expect(await call(server)).toMatchObject({ body: '800 true' })
      expect(await server.finished.nth(1)).toMatchObject({ source: 'route', outcome: 'ok' })
    })

    test('never gives more', async () => {
      await using server = await serve(host, {
        handler: show,
        options: { default: '2s' },
        inner: { default: '60s' },
      })
      expect(await call(server)).toMatchObject({ body: '2000' })
      expect(await call(server, { headers: { 'x-request-timeout-ms': '1000' } })).toMatchObject({
        body: '1000',
      })
    })

    test('answers at its own end, once, and ends the whole request', async () => {
      await using server = await serve(host, {
        handler: forever,
        options: { default: '5s' },
        inner: { default: 60 },
      })
      expect(await call(server)).toMatchObject({
        status: 504,
        headers: { 'x-deadline-outcome': 'deadline_exceeded' },
      })
      const { deadline } = await server.started.nth(1)
      expect(await aborted(deadline.signal)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(await server.finished.nth(1)).toMatchObject({ source: 'route', outcome: 'deadline_exceeded' })
      expect(server.finished.all).toHaveLength(1)
    })

    test('does not outlive the first', async () => {
      await using server = await serve(host, {
        handler: forever,
        options: { default: 60 },
        inner: { default: '5s' },
      })
      expect(await call(server)).toMatchObject({ status: 504 })
    })

    test('has a floor of its own', async () => {
      await using server = await serve(host, {
        handler: show,
        options: { default: 300 },
        inner: { floor: '1s' },
      })
      expect(await call(server)).toMatchObject({
        status: 504,
        headers: { 'x-deadline-outcome': 'short_circuited' },
      })
      expect(server.entered.all).toHaveLength(0)
    })

    test('that leaves no time lets no handler in', async () => {
      await using server = await serve(host, {
        handler: forever,
        options: { default: '5s' },
        inner: { default: 0 },
      })
      expect(await call(server)).toMatchObject({ status: 504 })
      expect(server.entered.all).toHaveLength(0)
    })

    test('says once which of its options come too late to count', async () => {
      const warned = (options: ServerOptions, inner: ServerOptions): Promise<string[]> =>
        warningsOf(async () => {
          await using server = await serve(host, { handler: show, options, inner })
          for (let count = 0; count < 2; count += 1) expect(await call(server)).toMatchObject({ status: 200 })
        })
      const tightening: ServerOptions = { default: '800ms', max: '1s', floor: 1, reserve: 1 }
      expect(await warned({}, { ...tightening, onExceeded: () => ({}) })).toEqual([])
      const same: ServerOptions = {
        late: 'send',
        trust: 'ignore',
        accept: ['grpc-timeout'],
        skewTolerance: 10,
      }
      expect(await warned(same, { ...same, skewTolerance: '10ms', malformed: undefined })).toEqual([])
      const other: ServerOptions = {
        ...{ accept: [], ambient: false, trust: 'clamp', skewTolerance: 20, malformed: 'reject' },
        ...{ late: 'replace', serverTiming: true },
      }
      expect(await warned(same, { ...tightening, ...other })).toEqual([
        'a second deadline() only tightens the first, which has decided accept, ambient, trust, skewTolerance, malformed, late, serverTiming',
      ])
    })

    test('answers in its own words', async () => {
      const inner = { default: 60, onExceeded: () => ({ body: 'the inner one' }) }
      const options = { default: '5s', onExceeded: () => ({ body: 'the outer one' }) }
      await using server = await serve(host, { handler: forever, options, inner })
      expect(await call(server)).toMatchObject({ status: 504, body: 'the inner one' })
    })

    test('hears of a shutdown of its own', async () => {
      const shutdown = new AbortController()
      const inner = { shutdownSignal: shutdown.signal, shutdownGrace: 0 }
      await using server = await serve(host, { handler: forever, inner })
      const reply = call(server)
      await server.entered.nth(1)
      shutdown.abort()
      expect(await reply).toMatchObject({ status: 503 })
      expect(await call(server)).toMatchObject({ status: 503 })
      expect(server.entered.all).toHaveLength(1)
    })
  })
}
