import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type RequestListener } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { deadline as expressDeadline, deadlineErrors } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import { type PipeEnd, sse, type StreamTarget } from '@timebudget/sse'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { afterEach, describe, expect, test } from 'vitest'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return urlOf(server)
}

function urlOf(server: ReturnType<typeof createServer>): string {
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

type Handle = (target: StreamTarget) => Promise<void>
const options = { default: '10s' }

/** Frameworks with their middleware; `failed` hears of what they take for an error of the application. */
const frameworks: Record<string, (handle: Handle, failed: (error: unknown) => void) => Promise<string>> = {
  'node:http': (handle) => listen(withDeadline((_request, response) => handle(response), options)),
  Express: (handle, failed) => {
    const app = express().use(expressDeadline(options))
    app.get('/', (_request, response) => handle(response))
    app.use(deadlineErrors())
    app.use((error: unknown, _request: unknown, _response: unknown, _next: unknown) => failed(error))
    return listen(app)
  },
  Koa: (handle, failed) => {
    const app = new Koa().use(koaDeadline(options)).use((ctx) => handle(ctx))
    app.on('error', failed)
    return listen(app.callback())
  },
  Fastify: async (handle, failed) => {
    const app = fastify()
    closers.push(() => app.close())
    app.setErrorHandler((error, _request, reply) => {
      failed(error)
      return reply.send(error)
    })
    await app.register(fastifyDeadline, options)
    app.get('/', (_request, reply) => handle(reply))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return urlOf(app.server)
  },
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const asking = get(url, { headers, agent: false })
  asking.on('error', () => {})
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return response.setEncoding('utf8')
}

async function* endless(signal: AbortSignal): AsyncGenerator<string> {
  while (!signal.aborted) {
    yield 'word '
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe.each(Object.entries(frameworks))('a stream under the middleware of %s', (_name, serve) => {
  test("ends at its caller's deadline with exactly one error event, and no failure of the application's", async () => {
    const failures: unknown[] = []
    const ends: PipeEnd[] = []
    const url = await serve(
      async (target) => {
        ends.push(await sse(target).pipe(({ signal }) => endless(signal)))
      },
      (error) => failures.push(error),
    )
    const response = await ask(url, { 'x-request-timeout-ms': '300' })
    let text = ''
    for await (const chunk of response) text += String(chunk)
    expect(response.complete).toBe(true)
    expect(text).toMatch(/"word "/)
    expect(text.match(/event: error/g)).toHaveLength(1)
    const last = JSON.parse(/event: error\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '')
    expect(last).toMatchObject({ code: 'DEADLINE_EXCEEDED', status: 504, partial: true })
    await expect.poll(() => ends).toEqual([{ outcome: 'deadline_exceeded' }])
    expect(failures).toEqual([])
  })

  test('ends with its client, which is no failure of the application either', async () => {
    const failures: unknown[] = []
    const ends: PipeEnd[] = []
    const url = await serve(
      async (target) => {
        ends.push(await sse(target).pipe(({ signal }) => endless(signal)))
      },
      (error) => failures.push(error),
    )
    const response = await ask(url)
    await once(response, 'data')
    response.destroy()
    await expect.poll(() => ends).toEqual([{ outcome: 'client_closed' }])
    expect(failures).toEqual([])
  })

  test('is one of many requests on a connection', async () => {
    const url = await serve(
      async (target) => {
        await sse(target).done({ answer: 42 })
      },
      () => {},
    )
    for (let round = 0; round < 3; round += 1) {
      const response = await fetch(url)
      expect(await response.text()).toBe(':\n\nevent: done\ndata: {"answer":42}\n\n')
    }
  })
})
