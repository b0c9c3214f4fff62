import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { bodyParser } from '@koa/bodyparser'
import cors from '@koa/cors'
import multer from '@koa/multer'
import Koa, { type Context, type Middleware } from 'koa'
import Koa2 from 'koa2'
import { koaBody } from 'koa-body'
import compress from 'koa-compress'
import send from 'koa-send'
import { describe, expect, test } from 'vitest'
import { currentDeadline, workLate } from '@timebudget/core'
import { deadline } from '@timebudget/koa'
import { begin, call, connection } from '../../core/test/server/client.ts'
import { deferred } from '../../core/test/server/deferred.ts'
import { formOf } from '../../core/test/server/form.ts'
import { listenOn } from '../../core/test/server/node-http.ts'
import { aborted, forever, stubborn } from '../../core/test/server/waiting.ts'

const frameworks = [
  ['Koa 3', Koa],
  ['Koa 2', Koa2 as unknown as typeof Koa],
] as const

async function serve(app: Koa) {
  const errors: unknown[] = []
  app.on('error', (error) => errors.push(error))
  const { port, close } = await listenOn(createServer(app.callback()))
  return { port, protocol: 'http/1.1' as const, errors, [Symbol.asyncDispose]: close }
}

const lateStyles: Readonly<Record<string, (context: Context) => unknown>> = {
  'a text': (context) => (context.body = 'late'),
  'an object': (context) => (context.body = { late: true }),
  'a stream': (context) => (context.body = Readable.from(['la', 'te'])),
  'a redirect': (context) => context.redirect('/elsewhere'),
  'a cookie': (context) => context.cookies.set('late', '1'),
  'a status and a header': (context) => {
    context.status = 201
    context.set('x-late', '1')
  },
  'a file': (context) => send(context, 'package.json', { root: `${import.meta.dirname}/..` }),
  'a write of its own': (context) => context.res.write('late'),
  'an error': (context) => context.throw(418),
}

describe.each(frameworks)('%s with other middleware', (_name, Framework) => {
  test.each(Object.entries(lateStyles))(
    'a handler that comes late with %s harms nobody',
    async (_style, style) => {
      const tried = deferred()
      const app = new Framework()
      app.use(deadline({ default: 60 }))
      app.use(async (context) => {
        if (context.path === '/quick') return void (context.body = 'quick')
        await aborted(context.deadline.signal)
        await stubborn(5)
        setTimeout(tried.resolve, 15)
        await style(context)
      })
      await using server = await serve(app)
      const kept = connection(server)
      expect(await call(server, { connection: kept })).toMatchObject({ status: 504 })
      await tried.promise
      expect(await call(server, { path: '/quick', connection: kept })).toMatchObject({
        status: 200,
        isReused: true,
        body: 'quick',
      })
      kept.close()
    },
  )

  test('a late body that is a stream is destroyed, and counted', async () => {
    const late = deferred()
    const stop = workLate.subscribe(() => late.resolve())
    const closed = deferred()
    const source = Readable.from(['la', 'te']).on('close', closed.resolve)
    const app = new Framework()
    app.use(deadline({ default: 60 }))
    app.use(async (context) => {
      await aborted(context.deadline.signal)
      await stubborn(10)
      context.body = source
    })
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({ status: 504 })
    await Promise.all([late.promise, closed.promise])
    stop()
  })

  test('middleware in front goes on at the deadline, and sees the 504', async () => {
    const seen = deferred<number>()
    const app = new Framework()
    app.use(async (context, next) => {
      await next()
      seen.resolve(context.status)
      context.set('x-took', '1')
    })
    app.use(deadline({ default: 60 }))
    app.use(forever)
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({ status: 504 })
    expect(await seen.promise).toBe(504)
    expect(server.errors).toEqual([])
  })

  test('law 10: no error is reported for a client that leaves, whatever it leaves', async () => {
    const handlers: Readonly<Record<string, Middleware>> = {
      '/heeds': async (context) => {
        throw await aborted(context.deadline.signal)
      },
      '/ignores': async (context) => {
        await aborted(context.deadline.signal)
        await stubborn(5)
        context.body = 'late'
      },
      '/streams': (context) => {
        context.body = Readable.from(
          (async function* () {
            yield 'one'
            await aborted(context.deadline.signal)
            yield 'two'
          })(),
        )
      },
    }
    const entered: Record<string, () => void> = {}
    const app = new Framework()
    app.use(deadline())
    app.use(async (context, next) => {
      entered[context.path]?.()
      await handlers[context.path]?.(context, next)
    })
    await using server = await serve(app)
    for (const path of Object.keys(handlers)) {
      const isEntered = new Promise<void>((resolve) => (entered[path] = resolve))
      const calling = begin(server, { path })
      await isEntered
      if (path === '/streams') await calling.firstPart
      calling.leave()
      await stubborn(50)
    }
    expect(server.errors).toEqual([])
  })

  test('a stream body that is cut off by the deadline is destroyed, and no error is reported', async () => {
    const closed = deferred()
    const source = new Readable({ read() {} }).on('close', closed.resolve)
    source.push('one')
    const app = new Framework()
    app.use(deadline({ default: 60 }))
    app.use((context) => void (context.body = source))
    await using server = await serve(app)
    await expect(call(server)).rejects.toThrow()
    await closed.promise
    expect(server.errors).toEqual([])
  })

  const upload = formOf({ field: 'a value', file: 'x'.repeat(100_000) })
  const json = { headers: { 'content-type': 'application/json' }, body: '{"a":1}' }
  const parsers = {
    '@koa/bodyparser': { parser: bodyParser(), call: json },
    'koa-body': { parser: koaBody(), call: json },
    'koa-body with files': { parser: koaBody({ multipart: true }), call: upload },
    '@koa/multer': { parser: multer().single('file') as unknown as Middleware, call: upload },
  }
  test.each(Object.entries(parsers))(
    'the ambient deadline is there after %s',
    async (_parser, { parser, call: sent }) => {
      const app = new Framework()
      app.use(deadline())
      app.use(parser)
      app.use((context) => void (context.body = String(currentDeadline() === context.deadline)))
      await using server = await serve(app)
      expect(await call(server, { method: 'POST', ...sent })).toMatchObject({ status: 200, body: 'true' })
    },
  )

  test.each(['in front of it', 'behind it'])('a compressor %s lets the 504 through', async (where) => {
    const app = new Framework()
    if (where === 'in front of it') app.use(compress({ threshold: 0 }))
    app.use(deadline({ default: 60 }))
    if (where === 'behind it') app.use(compress({ threshold: 0 }))
    app.use(forever)
    await using server = await serve(app)
    const reply = await call(server, { headers: { 'accept-encoding': 'gzip' } })
    expect(reply.status).toBe(504)
    expect(JSON.parse(reply.body)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })

  test('what cors has set stays on the 504, and the status line is ours', async () => {
    const app = new Framework()
    app.use(cors({ origin: 'https://a.example' }))
    app.use(deadline({ default: 60 }))
    app.use((context) => {
      context.status = 201
      return forever()
    })
    await using server = await serve(app)
    expect(await call(server, { headers: { origin: 'https://a.example' } })).toMatchObject({
      status: 504,
      statusText: 'Gateway Timeout',
      headers: { 'access-control-allow-origin': 'https://a.example' },
    })
  })

  test('an error that is none of ours is Koa’s to answer', async () => {
    const app = new Framework()
    app.use(deadline())
    app.use((context) => context.throw(418, 'a teapot'))
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({ status: 418 })
    expect(server.errors).toHaveLength(1)
  })

  test('an error that comes too late is reported, and one that heeds the signal is not', async () => {
    const app = new Framework()
    app.use(deadline({ default: 50 }))
    app.use(async (context) => {
      const reason = await aborted(context.deadline.signal)
      await stubborn(5)
      throw context.path === '/heeds' ? reason : new Error('too late')
    })
    await using server = await serve(app)
    await call(server, { path: '/heeds' })
    await call(server)
    await stubborn(30)
    expect(server.errors.map(String)).toEqual(['Error: too late'])
  })
})
