import { describe, expect, test } from 'vitest'
import {
  BudgetTooSmallError,
  CircuitOpenError,
  operation,
  OverloadedError,
  UpstreamError,
} from '@timebudget/core'
import { call } from '../client.ts'
import { type Handler, type Host, serve } from '../host.ts'
import { forever } from '../waiting.ts'

/** Errors of ours that a handler lets through. */
export function failureContract(host: Host): void {
  describe('an error of ours that a handler lets through', () => {
    const failing =
      (error: Error): Handler =>
      () =>
        Promise.reject(error)

    test('is answered with its status, outcome and fields', async () => {
      const error = new BudgetTooSmallError('it needs more', {
        operation: 'generate',
        budget: 500,
        elapsed: 400,
        remaining: 100,
      })
      await using server = await serve(host, { handler: failing(error) })
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 504, headers: { 'x-deadline-outcome': 'short_circuited' } })
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'short_circuited', status: 504 })
      if (host.answersErrors === false) return
      expect(reply.headers['content-type']).toBe('application/problem+json')
      expect(JSON.parse(reply.body)).toMatchObject({
        code: 'BUDGET_TOO_SMALL',
        operation: 'generate',
        remaining: 100,
      })
    })

    test('says when to come again', async () => {
      for (const error of [
        new OverloadedError('full', { retryAfter: 1500 }),
        new CircuitOpenError('open', { retryAfter: 2000 }),
      ]) {
        await using server = await serve(host, { handler: failing(error) })
        expect(await call(server)).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
      }
    })

    test('is found behind what another library made of it', async () => {
      const error = new Error('request failed', { cause: new UpstreamError('no answer') })
      await using server = await serve(host, { handler: failing(error) })
      if (host.answersErrors === false) return
      expect(await call(server)).toMatchObject({
        status: 502,
        headers: { 'x-deadline-outcome': 'upstream_error' },
      })
    })

    test('tells the client nothing of where a failed call went', async () => {
      const message = 'search failed: connect ECONNREFUSED 10.0.0.7:4601'
      const error = new UpstreamError(message, { operation: 'search', cause: new Error(message) })
      await using server = await serve(host, { handler: failing(error) })
      const { status, body } = await call(server)
      expect(status).toBe(502)
      if (host.answersErrors === false) return
      expect(JSON.parse(body)).toMatchObject({ code: 'UPSTREAM_ERROR', detail: 'search failed' })
      expect(body).not.toContain('10.0.0.7')
    })

    test('may be an operation’s timeout, while the request itself had time', async () => {
      const handler: Handler = ({ deadline }) => operation('generate', { timeout: 50, deadline }, forever)
      await using server = await serve(host, { handler })
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 504, headers: { 'x-deadline-outcome': 'operation_timeout' } })
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'operation_timeout', status: 504 })
    })

    test('has no body for a HEAD', async () => {
      await using server = await serve(host, { handler: failing(new OverloadedError('full')) })
      expect(await call(server, { method: 'HEAD' })).toMatchObject({
        status: 503,
        body: '',
        headers: { 'x-deadline-outcome': 'shed' },
      })
    })
  })
}
