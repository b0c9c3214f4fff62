import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import compression from 'compression'
import cors from 'cors'
import express, { type Express, type Request, type Response } from 'express'
import session, { MemoryStore } from 'express-session'
import express4 from 'express4'
import multer from 'multer'
import multer1 from 'multer1'
import { describe, expect, test } from 'vitest'
import { currentDeadline, OverloadedError } from '@timebudget/core'
import { deadline, deadlineErrors } from '@timebudget/express'
import { begin, call } from '../../core/test/server/client.ts'
import { formOf } from '../../core/test/server/form.ts'
import { listenOn } from '../../core/test/server/node-http.ts'

const frameworks = [
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
] as const

async function serve(app: Express) {
  app.set('env', 'test')
  const { port, close } = await listenOn(createServer(app))
  return { port, protocol: 'http/1.1' as const, [Symbol.asyncDispose]: close }
}

/** A store that never answers. */
class HangingStore extends MemoryStore {
  override set(): void {}
  override touch(): void {}
}

describe.each(frameworks)('%s with other middleware', (_name, framework) => {
  const show = (request: Request, response: Response): void => {
    response.send(String(currentDeadline() === request.deadline && request.deadline !== undefined))
  }
  const upload = formOf({ field: 'a value', file: 'x'.repeat(100_000) })
  const parsers = {
    'express.json': {
      parser: framework.json(),
      call: { headers: { 'content-type': 'application/json' }, body: '{"a":1}' },
    },
    'express.urlencoded': {
      parser: framework.urlencoded({ extended: false }),
      call: { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=1' },
    },
    'express.text': {
      parser: framework.text(),
      call: { headers: { 'content-type': 'text/plain' }, body: 'a' },
    },
    'multer 2': { parser: multer().single('file'), call: upload },
    'multer 1': { parser: multer1().single('file'), call: upload },
  }

  test.each(Object.entries(parsers))(
    'the ambient deadline is there after %s',
    async (_parser, { parser, call: sent }) => {
      const app = framework()
      app.use(deadline())
      app.post('/', parser as never, show)
      await using server = await serve(app)
      expect(await call(server, sent)).toMatchObject({ status: 200, body: 'true' })
      const calling = begin(server, { headers: sent.headers, isUploading: true })
      for (let start = 0; start < sent.body.length; start += 3 + start) {
        calling.write(Buffer.from(sent.body).subarray(start, start + 3 + start))
        await new Promise(setImmediate)
      }
      calling.end()
      expect(await calling.reply).toMatchObject({ status: 200, body: 'true' })
    },
  )

  describe('a session store that never answers', () => {
    const serveSessions = (store: MemoryStore) => {
      const app = framework()
      app.use(deadline({ default: 80 }))
      app.use(session({ secret: 'secret', resave: true, saveUninitialized: true, store }))
      app.get('/hang', () => {})
      app.get('/empty', (_request, response) => void response.status(204).end())
      app.get('/text', (_request, response) => void response.send('done'))
      return serve(app)
    }

    test('holds no 504 up, whether it reads or saves', async () => {
      const store = new HangingStore()
      await using server = await serveSessions(store)
      expect(await call(server, { path: '/hang' })).toMatchObject({ status: 504 })
      store.get = () => {}
      const signature = createHmac('sha256', 'secret').update('id').digest('base64').replace(/=+$/, '')
      const headers = { cookie: `connect.sid=${encodeURIComponent(`s:id.${signature}`)}` }
      expect(await call(server, { path: '/text', headers })).toMatchObject({ status: 504 })
    })

    test('leaves no answer half sent for longer than the deadline', async () => {
      await using server = await serveSessions(new HangingStore())
      for (const path of ['/text', '/empty']) await expect(call(server, { path })).rejects.toThrow()
    })
  })

  test.each(['in front of it', 'behind it'])('a compressor %s lets the 504 through', async (where) => {
    const app = framework()
    const compressor = compression({ threshold: 0 })
    const onExceeded = () => ({ headers: { 'content-type': 'text/plain' }, body: 'sorry '.repeat(1000) })
    if (where === 'in front of it') app.use(compressor)
    app.use(deadline({ default: 80, onExceeded }))
    if (where === 'behind it') app.use(compressor)
    app.get('/', () => {})
    await using server = await serve(app)
    const reply = await call(server, { headers: { 'accept-encoding': 'identity' } })
    expect(reply).toMatchObject({ status: 504, body: 'sorry '.repeat(1000) })
    const { status, headers } = await call(server, { headers: { 'accept-encoding': 'gzip' } })
    expect(status).toBe(504)
    expect(headers['content-encoding']).toBe(where === 'in front of it' ? 'gzip' : undefined)
  })

  test.each(['in front of it', 'behind it'])(
    'a compressor %s does not make a cut-off event stream look complete',
    async (where) => {
      const app = framework()
      if (where === 'in front of it') app.use(compression({ threshold: 0 }))
      app.use(deadline({ default: 80 }))
      if (where === 'behind it') app.use(compression({ threshold: 0 }))
      app.get('/', (_request, response) => {
        response.setHeader('content-type', 'text/event-stream')
        response.write('data: 1\n\n')
        response.flush()
      })
      await using server = await serve(app)
      const plain = call(server).then(({ body }) => body)
      expect(await plain).toContain('event: error')
      const packed = call(server, { headers: { 'accept-encoding': 'gzip' } })
      if (where === 'behind it') await expect(packed).rejects.toThrow()
      else expect((await packed).status).toBe(200)
    },
  )

  test('what cors has set stays on the 504', async () => {
    const app = framework()
    app.use(deadline({ default: 60 }))
    app.use(cors({ origin: 'https://a.example', exposedHeaders: ['x-deadline-outcome'] }))
    app.get('/', () => {})
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({
      status: 504,
      headers: {
        'access-control-allow-origin': 'https://a.example',
        'access-control-expose-headers': 'x-deadline-outcome',
      },
    })
  })

  test('an error of ours is answered by Express itself where deadlineErrors() is not used', async () => {
    const app = framework()
    app.use(deadline())
    app.get('/', () => {
      throw new OverloadedError('full', { retryAfter: 1000 })
    })
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({
      status: 503,
      headers: { 'x-deadline-outcome': 'shed', 'retry-after': '1' },
    })
    expect(await call(server, { method: 'HEAD' })).toMatchObject({ status: 503, body: '' })
  })

  test('deadlineErrors() leaves other errors to others', async () => {
    const app = framework()
    app.use(deadline())
    app.get('/', () => {
      throw Object.assign(new Error('a teapot'), { status: 418 })
    })
    app.use(deadlineErrors())
    await using server = await serve(app)
    expect(await call(server)).toMatchObject({ status: 418 })
  })

  test('a router and a route tighten, each for what is in it', async () => {
    const app = framework()
    const router = framework.Router()
    app.use(deadline({ default: '4s' }))
    const showBudget = (request: Request, response: Response): void => {
      response.send(String(Math.round(request.deadline.budget / 100)))
    }
    router.get('/all', showBudget)
    router.get('/one', deadline({ default: '1s' }), showBudget)
    app.use('/inner', deadline({ default: '2s' }), router)
    app.get('/outer', showBudget)
    await using server = await serve(app)
    expect(await call(server, { path: '/outer' })).toMatchObject({ body: '40' })
    expect(await call(server, { path: '/inner/all' })).toMatchObject({ body: '20' })
    expect(await call(server, { path: '/inner/one' })).toMatchObject({ body: '10' })
  })
})
