import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import busboy from 'busboy'
import formidable from 'formidable'
import { describe, expect, test } from 'vitest'
import { currentDeadline, type Deadline } from '@timebudget/core'
import { deadlineOf } from '@timebudget/core/server'
import { begin, call } from '../client.ts'
import { deferred } from '../deferred.ts'
import { type Exchange, type Host, serve } from '../host.ts'
import { formOf } from '../form.ts'

const options = { default: '10s' }
const form = formOf({ field: 'a value', file: 'x'.repeat(100_000) })

/** Ways to read a body, each told where it goes on. */
const readers: Readonly<Record<string, (exchange: Exchange, goOn: () => void) => void>> = {
  'by its events': ({ request }, goOn) => {
    request.on('data', () => {})
    request.on('end', goOn)
  },
  'by iteration': async ({ request }, goOn) => {
    for await (const _chunk of request);
    goOn()
  },
  'as a whole': ({ request }, goOn) => void text(request).then(goOn),
  'with busboy': ({ request }, goOn) => {
    const parser = busboy({ headers: request.headers })
    parser.on('file', (_name, file) => file.resume())
    parser.on('close', goOn)
    request.pipe(parser)
  },
  'with formidable': ({ request }, goOn) => formidable({ maxFiles: 1 }).parse(request, goOn),
}

/** The ambient deadline stays with its request. */
export function contextContract(host: Host): void {
  describe('currentDeadline()', () => {
    test('is the request’s own, also after a wait', async () => {
      const seen: (Deadline | undefined)[] = []
      const handler = async (): Promise<string> => {
        seen.push(currentDeadline())
        await new Promise(setImmediate)
        seen.push(currentDeadline())
        return 'done'
      }
      await using server = await serve(host, { handler, options })
      await Promise.all([call(server), call(server), call(server)])
      const entered = server.entered.all.map(({ deadline }) => deadline)
      expect(new Set(entered).size).toBe(3)
      expect(new Set(seen)).toEqual(new Set(entered))
    })

    test.each(Object.entries(readers))('is there after the body was read %s', async (_how, read) => {
      const handler = async (exchange: Exchange): Promise<undefined> => {
        const seen = await new Promise((resolve) => {
          read(exchange, () => resolve(currentDeadline()))
        })
        exchange.response.end(String(seen === exchange.deadline))
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      expect(await call(server, form)).toMatchObject({ status: 200, body: 'true' })
      // in parts, without a length
      const calling = begin(server, { headers: form.headers, isUploading: true })
      const bytes = Buffer.from(form.body)
      for (let start = 0; start < bytes.length; start += 20_000) {
        calling.write(bytes.subarray(start, start + 20_000))
        await new Promise(setImmediate)
      }
      calling.end()
      expect(await calling.reply).toMatchObject({ status: 200, body: 'true' })
    })

    test('is there after the framework’s own parser', async () => {
      const handler = ({ deadline }: Exchange): string => String(currentDeadline() === deadline)
      await using server = await serve(host, { handler, options, parsesJson: true })
      const headers = { 'content-type': 'application/json' }
      expect(await call(server, { headers, body: '{"a":1}' })).toMatchObject({ body: 'true' })
      const calling = begin(server, { headers, isUploading: true })
      for (const part of ['{"a"', ':', '1}']) {
        calling.write(part)
        await new Promise(setImmediate)
      }
      calling.end()
      expect(await calling.reply).toMatchObject({ status: 200, body: 'true' })
    })

    test('is there when the response closes and when the signal aborts', async () => {
      const seen = deferred<Deadline | undefined>()
      const seenByAbort = deferred<Deadline | undefined>()
      const handler = ({ response, deadline }: Exchange): Promise<never> => {
        response.on('close', () => seen.resolve(currentDeadline()))
        deadline.signal.addEventListener('abort', () => seenByAbort.resolve(currentDeadline()))
        return new Promise(() => {})
      }
      await using server = await serve(host, { handler, options })
      const calling = begin(server)
      const { deadline } = await server.entered.nth(1)
      calling.leave()
      expect(await seen.promise).toBe(deadline)
      expect(await seenByAbort.promise).toBe(deadline)
    })

    test('does not leak into what a connection carries later, nor out of the server', async () => {
      await using server = await serve(host, { handler: () => 'done', options })
      await call(server)
      expect(currentDeadline()).toBeUndefined()
    })

    test('is not used at all if it is not wanted, and the request carries the deadline', async () => {
      const handler = async ({ request, deadline }: Exchange): Promise<string> => {
        const before = currentDeadline()
        if (request.method === 'POST') await once(request.resume(), 'end')
        return [
          before === undefined,
          currentDeadline() === undefined,
          deadlineOf(request) === deadline,
        ].join()
      }
      await using server = await serve(host, { handler, options: { ...options, ambient: false } })
      expect(await call(server)).toMatchObject({ body: 'true,true,true' })
      expect(await call(server, { body: 'x' })).toMatchObject({ body: 'true,true,true' })
    })
  })
}
