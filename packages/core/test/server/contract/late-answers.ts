import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, test } from 'vitest'
import { begin, call, connection } from '../client.ts'
import { deferred } from '../deferred.ts'
import { type Exchange, type Handler, type Host, serve } from '../host.ts'
import { aborted, block, forever, stubborn } from '../waiting.ts'

const options = { default: 80 }

/** Ways to answer after somebody else has. */
const lateStyles: Readonly<Record<string, (exchange: Exchange) => unknown>> = {
  end: ({ response }) => response.end('late'),
  'writeHead and end': ({ response }) => response.writeHead(200, { 'x-late': '1' }).end('late'),
  'setHeader, write and end': ({ response }) => {
    response.statusCode = 201
    response.setHeader('x-late', '1')
    response.appendHeader('x-late', '2')
    response.removeHeader('content-type')
    response.write('la')
    response.end('te')
  },
  flushHeaders: ({ response }) => response.flushHeaders(),
  'a pipe': ({ response }) => Readable.from(['la', 'te']).pipe(response),
  'a pipeline': ({ response }) => pipeline(Readable.from(['la', 'te']), response),
  'destroying the response': ({ response }) => response.destroy(new Error('too late')),
  'destroying the socket': ({ request }) => request.socket.destroy(),
  trailers: ({ response }) => {
    response.addTrailers({ 'x-late': '1' })
    response.end()
  },
}

/** One answer a request, and it is in time. */
export function lateAnswerContract(host: Host): void {
  describe('a handler that does not answer in time', () => {
    test('is answered for by the deadline, and its signal says why', async () => {
      await using server = await serve(host, { handler: forever, options })
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 504, headers: { 'x-deadline-outcome': 'deadline_exceeded' } })
      expect(JSON.parse(reply.body)).toMatchObject({ code: 'DEADLINE_EXCEEDED', budget: 80, remaining: 0 })
      const { deadline } = await server.entered.nth(1)
      expect(await aborted(deadline.signal)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      const finished = await server.finished.nth(1)
      expect(finished).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
      expect(finished.elapsed).toBeGreaterThanOrEqual(80)
      expect(server.finished.all).toHaveLength(1)
    })

    test('has no say any more, and what it says is counted once', async () => {
      const handler: Handler = async ({ request, deadline }) => {
        if (request.url === '/quick') return 'quick'
        await aborted(deadline.signal)
        await stubborn(10)
        return 'late'
      }
      await using server = await serve(host, { handler, options })
      const kept = connection(server)
      expect(await call(server, { connection: kept })).toMatchObject({ status: 504 })
      await server.late.nth(1)
      expect(await call(server, { connection: kept, path: '/quick' })).toMatchObject({
        status: 200,
        body: 'quick',
      })
      kept.close()
      expect(server.late.all).toHaveLength(1)
      expect(server.late.all[0]).toMatchObject({ kind: 'answer' })
    })

    test.each(Object.keys(lateStyles))(
      'may well try with %s: the next request on its connection is served',
      async (style) => {
        const tried = deferred()
        const handler: Handler = async (exchange) => {
          if (exchange.request.url === '/quick') return void exchange.response.end('quick')
          await aborted(exchange.deadline.signal)
          setTimeout(tried.resolve, 20)
          await lateStyles[style]?.(exchange)
        }
        await using server = await serve(host, { handler, options, isRaw: true })
        const kept = connection(server)
        expect(await call(server, { connection: kept })).toMatchObject({ status: 504 })
        await tried.promise
        expect(await call(server, { connection: kept, path: '/quick' })).toMatchObject({
          status: 200,
          body: 'quick',
          isReused: true,
        })
        kept.close()
        expect(server.finished.all.map(({ outcome }) => outcome)).toEqual(['deadline_exceeded', 'ok'])
      },
    )

    test('may have its pipeline destroyed by the signal: the 504 is not', async () => {
      const handler: Handler = async ({ request, response, deadline }) => {
        if (request.url === '/quick') return void response.end('quick')
        await pipeline(new Readable({ read() {} }), response, { signal: deadline.signal })
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      const kept = connection(server)
      expect(await call(server, { connection: kept })).toMatchObject({ status: 504 })
      expect(await call(server, { connection: kept, path: '/quick' })).toMatchObject({
        status: 200,
        isReused: true,
      })
      kept.close()
    })

    test('may fail late without any harm', async () => {
      const failed = deferred()
      const handler: Handler = async ({ request, deadline }) => {
        if (request.url === '/quick') return 'quick'
        await aborted(deadline.signal)
        setTimeout(failed.resolve, 10)
        throw new Error('too late')
      }
      await using server = await serve(host, { handler, options })
      const kept = connection(server)
      expect(await call(server, { connection: kept })).toMatchObject({ status: 504 })
      await failed.promise
      expect(await call(server, { connection: kept, path: '/quick' })).toMatchObject({ status: 200 })
      kept.close()
    })

    test('that fails before any timer could run is answered all the same', async () => {
      const handler: Handler = ({ request }) => {
        if (request.url === '/quick') return 'quick'
        block(120)
        throw new Error('too late')
      }
      await using server = await serve(host, { handler, options })
      expect(await call(server)).toMatchObject({
        status: 504,
        headers: { 'x-deadline-outcome': 'deadline_exceeded' },
      })
      expect(await call(server, { path: '/quick' })).toMatchObject({ status: 200 })
    })

    test('loses what it said of a body, and keeps what it said of the exchange', async () => {
      const handler: Handler = ({ response }) => {
        response.statusCode = 201
        if (host.protocol === 'http/1.1') response.statusMessage = 'Created'
        response.setHeader('content-type', 'text/plain')
        response.setHeader('content-length', '3')
        response.setHeader('etag', '"1"')
        response.setHeader('set-cookie', 'session=1')
        response.setHeader('x-degraded', 'rung="rule"')
        response.setHeader('access-control-allow-origin', '*')
        return forever()
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      const reply = await call(server)
      expect(reply.status).toBe(504)
      expect(reply.headers).toMatchObject({
        'content-type': 'application/problem+json',
        'access-control-allow-origin': '*',
      })
      expect(reply.headers).not.toHaveProperty('etag')
      expect(reply.headers).not.toHaveProperty('set-cookie')
      expect(reply.headers).not.toHaveProperty('x-degraded')
      if (host.protocol === 'http/1.1') expect(reply.statusText).toBe('Gateway Timeout')
    })
  })

  describe('a handler that keeps the event loop until its deadline has passed', () => {
    const handler: Handler = ({ request }) => {
      block(120)
      return request.url === '/long' ? 'x'.repeat(2_000_000) : 'late'
    }

    test('does not reach the client with its answer', async () => {
      await using server = await serve(host, { handler, options })
      expect(await call(server)).toMatchObject({
        status: 504,
        headers: { 'x-deadline-outcome': 'deadline_exceeded' },
      })
      expect(await server.late.nth(1)).toMatchObject({ kind: 'answer' })
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
    })

    test('does so where late answers are sent, to the last byte', async () => {
      await using server = await serve(host, { handler, options: { ...options, late: 'send' } })
      expect(await call(server)).toMatchObject({ status: 200, body: 'late' })
      const long = await call(server, { path: '/long' })
      expect(long.status).toBe(200)
      expect(long.body).toHaveLength(2_000_000)
    })
  })

  test('an upload that takes longer than the deadline gets its 504 while it goes on', async () => {
    await using server = await serve(host, { handler: forever, options, isRaw: true })
    const kept = connection(server)
    const headers = { 'content-type': 'application/octet-stream' }
    const calling = begin(server, { isUploading: true, headers, connection: kept })
    const uploading = setInterval(() => calling.write('x'.repeat(1000)), 10)
    const reply = await calling.reply
    expect(reply.status).toBe(504)
    if (host.protocol === 'http/1.1') expect(reply.headers.connection).toBe('close')
    expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
    clearInterval(uploading)
    kept.close()
  })

  test('an upload that is being parsed at the deadline gets its 504', async () => {
    await using server = await serve(host, { handler: forever, options, parsesJson: true })
    const kept = connection(server)
    const headers = { 'content-type': 'application/json' }
    const calling = begin(server, { isUploading: true, headers, connection: kept })
    calling.write('{"half":')
    expect(await calling.reply).toMatchObject({ status: 504 })
    expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
    kept.close()
    expect(server.entered.all).toHaveLength(0)
  })
}
