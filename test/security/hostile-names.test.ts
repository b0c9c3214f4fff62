import { createServer, get, type IncomingMessage, type RequestListener } from 'node:http'
import { once } from 'node:events'
import { deadline as expressDeadline, deadlineErrors } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import { operation } from '@timebudget/core'
import { type ServerOptions, withDeadline } from '@timebudget/core/server'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'

/** What an operation may come to be called where its name is made of what users write. */
const hostile: readonly (readonly [string, string])[] = [
  ['with a header in it', 'a\r\nSet-Cookie: admin=1\r\n\r\n<script>'],
  ['with another entry in it', 'a", other;dur=1'],
  ['in Latin-1', 'größe'],
  ['in no Latin script', '名前 😀'],
  ['with half an emoji', '\ud83d'],
  ['with control characters', '\u0000\u007f\u0085\u2028\u202e'],
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['of nothing', ''],
  ['of 8 KiB', 'x'.repeat(8_192)],
  ['of 8,192 emoji', '😀'.repeat(8_192)],
]

type Work = () => Promise<unknown>

const options: ServerOptions = { default: '5s', serverTiming: true }

const servers: Readonly<Record<string, (work: Work) => Promise<RequestListener>>> = {
  async 'node:http'(work) {
    return withDeadline(async (_request, response) => {
      await work()
      response.end('done')
    }, options)
  },
  async Express(work) {
    const app = express()
    app.use(expressDeadline(options))
    app.use(async (_request, response) => {
      await work()
      response.send('done')
    })
    app.use(deadlineErrors())
    return app
  },
  async Koa(work) {
    const app = new Koa()
    app.use(koaDeadline(options))
    app.use(async (context) => {
      await work()
      context.body = 'done'
    })
    return app.callback()
  },
  async Fastify(work) {
    const app = fastify()
    await app.register(fastifyDeadline, options)
    app.get('/', async () => {
      await work()
      return 'done'
    })
    await app.ready()
    return app.routing
  },
}

interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  /** Names, as they came. */
  readonly names: readonly string[]
  readonly text: string
}

async function answerOf(listener: RequestListener): Promise<Answer> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const request = get({ port: address.port, host: '127.0.0.1', agent: false })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
    const names = response.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
    return { status: response.statusCode, headers: response.headers, names, text }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe.each(Object.keys(servers))('%s', (name) => {
  const serverFor = (work: Work): Promise<RequestListener> => {
    const build = servers[name]
    if (build === undefined) throw new Error(name)
    return build(work)
  }

  test.each(hostile)(
    'an operation with a name %s writes one short header, its own',
    async (_kind, called) => {
      const usual = await answerOf(await serverFor(() => operation('usual', {}, () => 1)))
      const answer = await answerOf(await serverFor(() => operation(called, {}, () => 1)))
      expect(answer.status).toBe(200)
      expect(answer.text).toBe('done')
      expect(answer.names.toSorted()).toEqual(usual.names.toSorted())
      expect(String(answer.headers['server-timing'])).toMatch(
        /^[\w!#$%&'*+\-.^`|~]{1,128};dur=[\d.]+;desc="ok";start=[\d.]+$/,
      )
    },
  )

  test.each(hostile)(
    'the refusal of an operation with a name %s is JSON and no header',
    async (_kind, called) => {
      const refusalOf = async (named: string): Promise<Answer> =>
        answerOf(await serverFor(() => operation(named, { floor: '1h' }, () => 1)))
      const [usual, answer] = [await refusalOf('usual'), await refusalOf(called)]
      expect(answer.status).toBe(504)
      expect(answer.names.toSorted()).toEqual(usual.names.toSorted())
      expect(answer.headers['x-deadline-outcome']).toBe('short_circuited')
      // Fastify answers errors by itself, in its own words
      expect(answer.headers['content-type']).toMatch(/^application\/(problem\+)?json/)
      expect(JSON.parse(answer.text)).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
      expect(answer.text.length).toBeLessThan(70_000)
    },
  )
})
