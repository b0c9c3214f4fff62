import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, test } from 'vitest'
import { begin, call } from '../client.ts'
import { deferred } from '../deferred.ts'
import { type Exchange, type Handler, type Host, serve } from '../host.ts'
import { aborted, forever, stubborn } from '../waiting.ts'

const options = { default: 100 }

/** Law 8: a cut-off stream never looks complete. */
export function begunResponseContract(host: Host): void {
  const streaming = (contentType: string, parts: readonly (string | Buffer)[], headers = {}): Handler =>
    function stream({ response }: Exchange) {
      response.writeHead(200, { 'content-type': contentType, ...headers })
      response.flushHeaders()
      for (const part of parts) response.write(part)
      return forever()
    }

  describe('law 8: a response that has begun', () => {
    const whole: Readonly<Record<string, readonly (string | Buffer)[]>> = {
      'after an event': ['data: 1\n\n'],
      'after an event in two parts': ['data: 1\n', '\n'],
      'after an event with other line ends': ['data: 1\r\n\r\n'],
      'after an event in bytes': [Buffer.from('data: 1\n'), Buffer.from('\n')],
      'before the first event': [''],
      'after a comment': [':\n\n'],
    }
    test.each(Object.entries(whole))(
      'ends with an error event as an event stream, %s',
      async (_when, parts) => {
        const handler = streaming('text/event-stream; charset=utf-8', parts)
        await using server = await serve(host, { handler, options, isRaw: true })
        const reply = await call(server)
        const sent = Buffer.concat(parts.map((part) => Buffer.from(part))).toString()
        expect(reply.status).toBe(200)
        expect(reply.body.startsWith(`${sent}event: error\ndata: `)).toBe(true)
        const [, data = ''] = /event: error\ndata: (.*)\n\n$/.exec(reply.body) ?? []
        expect(JSON.parse(data)).toMatchObject({
          code: 'DEADLINE_EXCEEDED',
          outcome: 'deadline_exceeded',
          status: 504,
        })
        expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 200 })
      },
    )

    test('ends with an error event while the request is still uploading', async () => {
      const handler = streaming('text/event-stream', ['data: 1\n\n'])
      await using server = await serve(host, { handler, options, isRaw: true })
      const calling = begin(server, { isUploading: true })
      expect((await calling.reply).body).toContain('event: error')
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded' })
    })

    const broken: readonly (readonly [string, Handler])[] = [
      [
        'as an event stream in the midst of an event',
        streaming('text/event-stream', ['data: 1\n\n', 'data: 2']),
      ],
      [
        'as an event stream that is compressed',
        streaming('text/event-stream', ['data: 1\n\n'], { 'content-encoding': 'gzip' }),
      ],
      ['as lines of JSON', streaming('application/x-ndjson', ['{"a":1}\n'])],
      ['as a text', streaming('text/plain', ['a text\n\n'])],
      ['with a length', streaming('text/plain', ['a text'], { 'content-length': '1000' })],
    ]
    test.each(broken)('breaks off %s', async (_kind, handler) => {
      await using server = await serve(host, { handler, options, isRaw: true })
      const calling = begin(server)
      expect((await calling.head).status).toBe(200)
      await expect(calling.reply).rejects.toThrow()
      expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 200 })
      expect(server.finished.all).toHaveLength(1)
    })

    test('stays cut off whatever the handler writes afterwards', async () => {
      const tried = deferred()
      const handler: Handler = async ({ response, deadline }) => {
        response.write('one')
        await aborted(deadline.signal)
        response.write('two')
        response.end('three')
        await stubborn(10)
        tried.resolve()
      }
      await using server = await serve(host, { handler, options, isRaw: true })
      await expect(call(server)).rejects.toThrow()
      await tried.promise
      expect(await server.late.nth(1)).toMatchObject({ kind: 'answer' })
    })

    const endless = function* endless(contentType: string): Generator<string> {
      const text = 'x'.repeat(65_536)
      for (;;) yield contentType === 'text/event-stream' ? `data: ${text}\n\n` : text
    }

    test.each(['text/plain', 'text/event-stream'])(
      'breaks off as %s that its client does not read, and so does its source',
      async (type) => {
        const source = Readable.from(endless(type))
        const closed = new Promise((resolve) => source.once('close', resolve))
        const handler: Handler = async ({ response }) => {
          response.setHeader('content-type', type)
          await pipeline(source, response).catch(() => {})
        }
        await using server = await serve(host, { handler, options, isRaw: true })
        const calling = begin(server)
        await calling.head
        calling.pause()
        await closed
        expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 200 })
        calling.leave()
      },
    )
  })
}
