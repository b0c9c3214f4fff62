import fastifyCompress from '@fastify/compress'
import compression from 'compression'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import koaCompress from 'koa-compress'
import { describe, expect, test } from 'vitest'
import { type EventStream, sse, type StreamTarget } from '../src/index.ts'
import { aborted, listen, listening, onEnd, open, signal } from './support/server.ts'

/** One handler for all frameworks: says what the test tells it to. */
type Handle = (target: StreamTarget) => Promise<void> | void

const frameworks: Record<string, (handle: Handle) => Promise<string>> = {
  'node:http': (handle) => listen((_request, response) => void handle(response)),
  'Express behind compression': (handle) => {
    const app = express().use(compression({ threshold: 0 }))
    app.get('/', async (_request, response) => {
      response.setHeader('x-own', 'kept')
      await handle(response)
    })
    return listen(app)
  },
  'Koa behind koa-compress': (handle) => {
    const app = new Koa().use(koaCompress({ threshold: 0 }))
    app.on('error', () => {})
    app.use(async (ctx) => {
      ctx.set('x-own', 'kept')
      await handle(ctx)
    })
    return listen(app.callback())
  },
  'Fastify behind @fastify/compress': async (handle) => {
    const app = fastify()
    onEnd(() => app.close())
    await app.register(fastifyCompress, { threshold: 0 })
    app.get('/', async (_request, reply) => {
      reply.header('x-own', 'kept')
      await handle(reply)
    })
    await app.ready()
    return listening(app.server)
  },
}

describe.each(Object.entries(frameworks))('%s', (name, serve) => {
  test('hands on each event as it is sent', async () => {
    const streams = signal<EventStream>()
    const url = await serve((target) => streams.resolve(sse(target, { heartbeat: 50 })))
    const client = await open(url, { headers: { 'accept-encoding': 'gzip, br' } })
    expect(client.response.statusCode).toBe(200)
    expect(client.response.headers['content-encoding']).toBeUndefined()
    if (name !== 'node:http') expect(client.response.headers['x-own']).toBe('kept')
    await client.until(/event: heartbeat/)
    const stream = await streams.promise
    for (const token of ['first', 'second']) {
      expect(await stream.token(token)).toBe(true)
      await client.until(new RegExp(`"${token}"`))
    }
    await stream.done()
    expect(await client.ended).toBe('whole')
    expect(client.text()).toMatch(/event: done\ndata: \{\}\n\n$/)
  })

  test('tells the work that its client has left', async () => {
    const reason = signal<unknown>()
    const url = await serve(async (target) => {
      const stream = sse(target)
      await stream.token('first')
      reason.resolve(await aborted(stream.signal))
    })
    const client = await open(url)
    await client.until(/first/)
    client.leave()
    expect(await reason.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
  })
})

test('a compressor that will not leave a stream alone is made to flush each event', async () => {
  const streams = signal<EventStream>()
  const app = express().use(compression({ threshold: 0 }))
  app.get('/', (_request, response) => {
    const setHeader = response.setHeader.bind(response)
    response.setHeader = (name, value) => setHeader(name, name === 'cache-control' ? 'no-cache' : value)
    streams.resolve(sse(response))
  })
  const url = await listen(app)
  const answer = await fetch(url, { headers: { 'accept-encoding': 'gzip' } })
  expect(answer.headers.get('content-encoding')).toBe('gzip')
  const stream = await streams.promise
  await stream.token('first')
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('first')) text += (await reader?.read())?.value ?? ''
  await stream.done()
})
