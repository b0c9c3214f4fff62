import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { begin, call, connection } from '../client.ts'
import { deferred } from '../deferred.ts'
import { type Host, serve } from '../host.ts'
import { aborted, forever } from '../waiting.ts'

/** What a shutdown leaves to those who are still being served. */
export function shutdownContract(host: Host): void {
  describe('a shutdown', () => {
    test('lets running requests finish within the grace', async () => {
      const shutdown = new AbortController()
      const goOn = deferred()
      const handler = async (): Promise<string> => {
        await goOn.promise
        return 'done'
      }
      await using server = await serve(host, { handler, options: { shutdownSignal: shutdown.signal } })
      const reply = call(server)
      await server.entered.nth(1)
      shutdown.abort()
      setImmediate(goOn.resolve)
      expect(await reply).toMatchObject({ status: 200, body: 'done' })
    })

    test.each([60, 0])('ends those that run longer than a grace of %i ms', async (shutdownGrace) => {
      const shutdown = new AbortController()
      const options = { shutdownSignal: shutdown.signal, shutdownGrace }
      await using server = await serve(host, { handler: forever, options })
      const reply = call(server)
      const { deadline } = await server.entered.nth(1)
      shutdown.abort()
      expect(await reply).toMatchObject({ status: 503, headers: { 'x-deadline-outcome': 'shutdown' } })
      expect(await aborted(deadline.signal)).toMatchObject({ code: 'SHUTTING_DOWN' })
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'shutdown', status: 503 })
    })

    test('does not lengthen anybody’s budget', async () => {
      const shutdown = new AbortController()
      const options = { shutdownSignal: shutdown.signal, shutdownGrace: '10s', default: 80 }
      await using server = await serve(host, { handler: forever, options })
      const reply = call(server)
      await server.entered.nth(1)
      shutdown.abort()
      expect(await reply).toMatchObject({ status: 504 })
    })

    test('refuses new requests, before it and after it', async () => {
      const shutdown = new AbortController()
      await using server = await serve(host, {
        handler: () => 'done',
        options: { shutdownSignal: shutdown.signal },
      })
      expect(await call(server)).toMatchObject({ status: 200 })
      shutdown.abort()
      const reply = await call(server)
      expect(reply).toMatchObject({ status: 503, headers: { 'x-deadline-outcome': 'shutdown' } })
      expect(JSON.parse(reply.body)).toMatchObject({ code: 'SHUTTING_DOWN', status: 503 })
      expect(server.entered.all).toHaveLength(1)
    })

    test('keeps no connection for more, after an answer and after a refusal', async () => {
      const shutdown = new AbortController()
      const goOn = deferred()
      await using server = await serve(host, {
        handler: () => goOn.promise.then(() => 'done'),
        options: { shutdownSignal: shutdown.signal },
      })
      const [running, refused] = [connection(server), connection(server)]
      const reply = call(server, { connection: running })
      await server.entered.nth(1)
      shutdown.abort()
      goOn.resolve()
      const answers = [await reply, await call(server, { connection: refused })]
      expect(answers.map(({ status }) => status)).toEqual([200, 503])
      for (const [index, { session }] of [running, refused].entries()) {
        if (session === undefined) expect(answers[index]?.headers['connection']).toBe('close')
        else await expect.poll(() => session.closed).toBe(true)
      }
      running.close()
      refused.close()
    })

    test('breaks off what has begun, as at the deadline', async () => {
      const shutdown = new AbortController()
      const options = { shutdownSignal: shutdown.signal, shutdownGrace: 50 }
      await using server = await serve(host, {
        handler({ response }) {
          response.write('half')
          return forever()
        },
        options,
        isRaw: true,
      })
      const calling = begin(server)
      await calling.firstPart
      shutdown.abort()
      await expect(calling.reply).rejects.toThrow()
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'shutdown', status: 200 })
    })

    test('is one listener on its signal, however many requests there are', async () => {
      const shutdown = new AbortController()
      const handler = ({ deadline }: { deadline: { signal: AbortSignal } }): string =>
        String(deadline.signal.aborted)
      await using server = await serve(host, { handler, options: { shutdownSignal: shutdown.signal } })
      await Promise.all(Array.from({ length: 30 }, () => call(server)))
      expect(getEventListeners(shutdown.signal, 'abort')).toHaveLength(1)
    })
  })
}
