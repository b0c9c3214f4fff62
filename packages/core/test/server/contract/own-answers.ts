import { describe, expect, test } from 'vitest'
import { operation } from '@timebudget/core'
import type { ServerOptions } from '@timebudget/core/server'
import { call } from '../client.ts'
import { type Handler, type Host, serve } from '../host.ts'
import { forever } from '../waiting.ts'

/** The user's own 504, and what the ledger tells the caller. */
export function ownAnswerContract(host: Host): void {
  const answering = (onExceeded: ServerOptions['onExceeded']): ServerOptions => ({ default: 50, onExceeded })

  describe('an answer of the user’s own', () => {
    test('takes the place of ours', async () => {
      const options = answering((error, request) => ({
        status: 503,
        headers: { 'retry-after': '1', 'x-code': error.code },
        body: { asked: request.url },
      }))
      await using server = await serve(host, { handler: forever, options })
      const reply = await call(server, { path: '/report' })
      expect(reply).toMatchObject({
        status: 503,
        headers: {
          'retry-after': '1',
          'x-code': 'DEADLINE_EXCEEDED',
          'content-type': 'application/json',
          'x-deadline-outcome': 'deadline_exceeded',
        },
      })
      expect(JSON.parse(reply.body)).toEqual({ asked: '/report' })
    })

    test('may be a text, bytes, or nothing but a header', async () => {
      const bodies: readonly (string | Uint8Array | undefined)[] = ['sorry', Buffer.from('sorry'), undefined]
      for (const body of bodies) {
        const options = answering(() => ({ headers: { 'content-type': 'text/plain' }, body }))
        await using server = await serve(host, { handler: forever, options })
        const reply = await call(server)
        expect(reply).toMatchObject({ status: 504, headers: { 'content-type': 'text/plain' } })
        expect(reply.body).toBe(body === undefined ? reply.body : 'sorry')
      }
    })

    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    const useless: Readonly<Record<string, ServerOptions['onExceeded']>> = {
      'that throws': () => {
        throw new Error('no answer')
      },
      'that comes too late': (() => Promise.reject(new Error('no answer'))) as never,
      'with a header that Node refuses': () => ({ headers: { 'x-text': 'two\r\nlines' } }),
      'with a header that is none': () => ({ headers: { 'no name': '1' } }),
      'with a status that is none': () => ({ status: 20 }),
      'with a body that is no JSON': () => ({ body: circular }),
    }
    test.each(Object.entries(useless))('%s is replaced by ours', async (_kind, onExceeded) => {
      await using server = await serve(host, { handler: forever, options: answering(onExceeded) })
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 504, headers: { 'content-type': 'application/problem+json' } })
      expect(JSON.parse(reply.body)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(reply.headers).not.toHaveProperty('x-text')
    })

    test('does not decide how it is framed', async () => {
      const options = answering(() => ({
        headers: { 'content-length': '1', 'transfer-encoding': 'chunked', Trailer: 'x' },
        body: 'sorry',
      }))
      await using server = await serve(host, { handler: forever, options })
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 504, body: 'sorry', headers: { 'content-length': '5' } })
      expect(reply.headers).not.toHaveProperty('transfer-encoding')
    })

    test('has no body where its status allows none, or the request is a HEAD', async () => {
      await using empty = await serve(host, { handler: forever, options: answering(() => ({ status: 204 })) })
      expect(await call(empty)).toMatchObject({ status: 204, body: '' })
      await using server = await serve(host, {
        handler: forever,
        options: answering(() => ({ body: 'sorry' })),
      })
      expect(await call(server, { method: 'HEAD' })).toMatchObject({ status: 504, body: '' })
    })
  })

  describe('Server-Timing', () => {
    const handler: Handler = async ({ request, response, deadline }) => {
      await operation('retrieve', { deadline }, () => {})
      if (request.url === '/hang') return operation('generate', { deadline }, forever)
      const headers = { 'Server-Timing': 'own;dur=1', 'x-other': '1' }
      if (request.url === '/object') response.writeHead(200, headers)
      if (request.url === '/list') response.writeHead(200, Object.entries(headers).flat())
      if (request.url === '/set') response.setHeader('server-timing', ['own;dur=1'])
      response.end()
    }
    const peer = { 'x-request-timeout-ms': '80' }

    test('goes to callers that sent a deadline', async () => {
      await using server = await serve(host, { handler, isRaw: true })
      const reply = await call(server, { headers: peer })
      expect(reply.headers['server-timing']).toMatch(/^retrieve;dur=[\d.]+;desc="ok";start=[\d.]+$/)
      expect((await call(server)).headers).not.toHaveProperty('server-timing')
    })

    test('goes to all, or to none', async () => {
      await using open = await serve(host, { handler, isRaw: true, options: { serverTiming: true } })
      expect((await call(open)).headers).toHaveProperty('server-timing')
      await using closed = await serve(host, { handler, isRaw: true, options: { serverTiming: false } })
      expect((await call(closed, { headers: peer })).headers).not.toHaveProperty('server-timing')
    })

    test('shows on a 504 what was still running', async () => {
      await using server = await serve(host, { handler, isRaw: true })
      const reply = await call(server, { headers: peer, path: '/hang' })
      expect(reply.status).toBe(504)
      expect(reply.headers['server-timing']).toMatch(/^retrieve;.*, generate;/)
    })

    test('joins what the handler itself tells', async () => {
      await using server = await serve(host, { handler, isRaw: true })
      for (const path of ['/object', '/list', '/set']) {
        const reply = await call(server, { headers: peer, path })
        expect(reply.headers['server-timing']).toMatch(/^own;dur=1, retrieve;/)
      }
    })
  })
}
