import { createReadStream } from 'node:fs'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import compress from '@fastify/compress'
import cors from '@fastify/cors'
import multipart from '@fastify/multipart'
import { fastifyRequestContext, requestContext } from '@fastify/request-context'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { currentDeadline, type Deadline, OverloadedError, requestFinished } from '@timebudget/core'
import { deadline } from '@timebudget/fastify'
import { begin, call, connection } from '../../core/test/server/client.ts'
import { deferred } from '../../core/test/server/deferred.ts'
import { formOf } from '../../core/test/server/form.ts'
import { aborted, forever, stubborn } from '../../core/test/server/waiting.ts'

declare module '@fastify/request-context' {
  interface RequestContextData {
    user: string
  }
}

/** An application and what it logs as warnings and worse. */
function application(): { app: FastifyInstance; errors: string[] } {
  const errors: string[] = []
  const stream = new Writable({
    write(line, _encoding, done) {
      const { level, msg } = JSON.parse(String(line))
      if (level >= 50) errors.push(msg)
      done()
    },
  })
  return { app: fastify({ forceCloseConnections: true, logger: { level: 'info', stream } }), errors }
}

async function listen(app: FastifyInstance) {
  await app.listen({ port: 0, host: 'localhost' })
  const { port } = app.server.address() as { port: number }
  return { port, protocol: 'http/1.1' as const, [Symbol.asyncDispose]: () => app.close() }
}

const show = (request: FastifyRequest): string => String(currentDeadline() === request.deadline)

const lateStyles: Readonly<Record<string, (reply: FastifyReply) => unknown>> = {
  'a value': () => ({ late: true }),
  'reply.send': (reply) => reply.send('late'),
  'reply.redirect': (reply) => reply.redirect('/elsewhere'),
  'reply.header and reply.code': (reply) => reply.header('x-late', '1').code(201).send(),
  'a stream': (reply) => reply.send(createReadStream(fileURLToPath(import.meta.url))),
  'a web response': (reply) => reply.send(new Response('late')),
  'an error': () => {
    throw new Error('late')
  },
  'reply.send(error)': (reply) => reply.send(new Error('late')),
  'a write to reply.raw': (reply) => {
    reply.raw.setHeader('x-late', '1')
    reply.raw.write('la')
    reply.raw.end('te')
    return reply
  },
  'a hijack': (reply) => {
    reply.hijack()
    reply.raw.end('late')
  },
}

describe('Fastify with other plugins', () => {
  test.each(Object.entries(lateStyles))(
    'a handler that comes late with %s harms nobody',
    async (_style, style) => {
      const tried = deferred()
      const { app } = application()
      await app.register(deadline, { default: 60 })
      app.get('/quick', () => 'quick')
      app.get('/late', async (request, reply) => {
        await aborted(request.deadline.signal)
        await stubborn(5)
        setTimeout(tried.resolve, 15)
        return style(reply)
      })
      await using server = await listen(app)
      const kept = connection(server)
      expect(await call(server, { path: '/late', connection: kept })).toMatchObject({ status: 504 })
      await tried.promise
      expect(await call(server, { path: '/quick', connection: kept })).toMatchObject({
        status: 200,
        isReused: true,
        body: 'quick',
      })
      kept.close()
    },
  )

  test('law 10: no error is logged for a client that leaves', async () => {
    const entered = deferred()
    const { app, errors } = application()
    await app.register(deadline)
    app.get('/heeds', async (request) => {
      entered.resolve()
      throw await aborted(request.deadline.signal)
    })
    await using server = await listen(app)
    const calling = begin(server, { path: '/heeds' })
    await entered.promise
    calling.leave()
    await stubborn(50)
    expect(errors).toEqual([])
  })

  describe('the ambient deadline', () => {
    test('is there in every hook, and in the handler', async () => {
      const seen: Record<string, Deadline | undefined> = {}
      const { app } = application()
      await app.register(deadline)
      for (const name of [
        'onRequest',
        'preParsing',
        'preValidation',
        'preHandler',
        'preSerialization',
        'onSend',
      ] as const) {
        app.addHook(name as 'onRequest', async () => void (seen[name] = currentDeadline()))
      }
      app.post('/', async (request) => {
        seen['handler'] = currentDeadline()
        return { own: request.deadline !== undefined }
      })
      await using server = await listen(app)
      const headers = { 'content-type': 'application/json' }
      expect(await call(server, { headers, body: '{"a":1}' })).toMatchObject({
        status: 200,
        body: '{"own":true}',
      })
      expect(Object.keys(seen)).toHaveLength(7)
      expect(new Set(Object.values(seen)).size).toBe(1)
      expect(seen['handler']).toBeDefined()
    })

    test.each(['before', 'after'])(
      'is there with @fastify/request-context registered %s it, and so is that one',
      async (when) => {
        const { app } = application()
        if (when === 'before') await app.register(fastifyRequestContext)
        await app.register(deadline)
        if (when === 'after') await app.register(fastifyRequestContext)
        app.addHook('onRequest', async () => requestContext.set('user', 'somebody'))
        app.post('/', async (request) => `${show(request)} ${requestContext.get('user')}`)
        await using server = await listen(app)
        const headers = { 'content-type': 'application/json' }
        expect(await call(server, { headers, body: '{"a":1}' })).toMatchObject({
          status: 200,
          body: 'true somebody',
        })
        const calling = begin(server, { headers, isUploading: true })
        calling.write('{"a"')
        await stubborn(10)
        calling.write(':1}')
        calling.end()
        expect(await calling.reply).toMatchObject({ status: 200, body: 'true somebody' })
      },
    )

    test('is there after each part of a multipart body, and its signal has not aborted', async () => {
      const { app } = application()
      await app.register(deadline)
      await app.register(multipart)
      app.post('/', async (request) => {
        const seen = []
        for await (const part of request.parts()) {
          if (part.type === 'file') await part.toBuffer()
          seen.push(currentDeadline() === request.deadline)
        }
        await stubborn(20)
        return [...seen, request.deadline.signal.aborted]
      })
      await using server = await listen(app)
      const form = formOf({ field: 'a value', file: 'x'.repeat(100_000) })
      expect(await call(server, form)).toMatchObject({ status: 200, body: '[true,true,false]' })
    })
  })

  test('what @fastify/cors and a hook have set stays on the 504', async () => {
    const { app } = application()
    await app.register(deadline, { default: 60 })
    await app.register(cors, { origin: 'https://a.example' })
    app.addHook(
      'preHandler',
      async (_request, reply) => void reply.header('x-request-id', '1').type('text/plain'),
    )
    app.get('/', forever)
    await using server = await listen(app)
    expect(await call(server)).toMatchObject({
      status: 504,
      headers: {
        'access-control-allow-origin': 'https://a.example',
        'x-request-id': '1',
        'content-type': 'application/problem+json',
      },
    })
  })

  test.each(['in front of it', 'behind it'])('a compressor %s lets the 504 through', async (where) => {
    const { app } = application()
    if (where === 'in front of it') await app.register(compress, { threshold: 0 })
    await app.register(deadline, { default: 60 })
    if (where === 'behind it') await app.register(compress, { threshold: 0 })
    app.get('/', forever)
    await using server = await listen(app)
    const reply = await call(server, { headers: { 'accept-encoding': 'gzip' } })
    expect(reply.status).toBe(504)
    expect(JSON.parse(reply.body)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })

  test('an error of ours is answered by Fastify itself, with its status and outcome', async () => {
    const { app } = application()
    await app.register(deadline)
    app.get('/', async () => {
      throw new OverloadedError('full', { retryAfter: 1000 })
    })
    await using server = await listen(app)
    expect(await call(server)).toMatchObject({
      status: 503,
      headers: { 'x-deadline-outcome': 'shed', 'retry-after': '1' },
    })
  })

  test('hooks for the response run for a 504 too', async () => {
    const seen = deferred<number>()
    const { app } = application()
    app.addHook('onResponse', async (_request, reply) => seen.resolve(reply.raw.statusCode))
    await app.register(deadline, { default: 60 })
    app.get('/', forever)
    await using server = await listen(app)
    expect(await call(server)).toMatchObject({ status: 504 })
    expect(await seen.promise).toBe(504)
  })

  test('inject() is answered as any request, and is nobody who left', async () => {
    const outcomes: string[] = []
    const stop = requestFinished.subscribe(({ outcome }) => outcomes.push(outcome))
    const { app } = application()
    await app.register(deadline, { default: 60 })
    app.post('/', async (request) => {
      await stubborn(20)
      return String(request.deadline.signal.aborted)
    })
    app.get('/hang', forever)
    expect(await app.inject({ method: 'POST', url: '/', payload: { a: 1 } })).toMatchObject({
      statusCode: 200,
      body: 'false',
    })
    expect(await app.inject('/hang')).toMatchObject({ statusCode: 504 })
    expect(outcomes).toEqual(['ok', 'deadline_exceeded'])
    stop()
    await app.close()
  })
})
