import { createServer } from 'node:http'
import { operation } from '@timebudget/core'
import { deadline as expressDeadline } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { inspector } from '@timebudget/inspector'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { beforeAll, expect, test } from 'vitest'
import { buildPage } from '../../packages/inspector/test/support/built-page.ts'
import { ask, listening, onEnd, pause } from '../../packages/inspector/test/support/server.ts'

beforeAll(buildPage)

const work = (): Promise<void> => operation('retrieve', { timeout: '1s' }, () => pause(10))

// an adapter that refuses and replaces answers stands before the inspector, as applications have it
const hosts: Readonly<Record<string, () => Promise<string>>> = {
  async express() {
    const inspect = inspector()
    onEnd(() => inspect.close())
    const app = express()
    app.use(expressDeadline())
    app.use('/__budget', inspect)
    app.get('/ours', async (_request, response) => void response.send((await work(), 'ours')))
    return listening(createServer(app))
  },
  async koa() {
    const inspect = inspector()
    onEnd(() => inspect.close())
    const app = new Koa()
    app.use(koaDeadline())
    app.use(inspect)
    app.use(async (context) => {
      await work()
      context.body = 'ours'
    })
    return listening(createServer(app.callback()))
  },
  async fastify() {
    const inspect = inspector()
    onEnd(() => inspect.close())
    const app = fastify({ forceCloseConnections: true })
    await app.register(fastifyDeadline)
    await app.register(inspect, { prefix: '/__budget' })
    app.get('/ours', async () => (await work(), 'ours'))
    onEnd(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
}

test.each(Object.entries(hosts))(
  'behind the deadline of %s the page works, and is not in its own list',
  async (_name, build) => {
    const url = await build()
    for (const path of ['', 'main.js', 'snapshot.json'])
      expect((await ask(`${url}/__budget/${path}`)).status).toBe(200)
    expect(await ask(`${url}/ours?q=1`)).toMatchObject({ status: 200, body: 'ours' })
    expect(JSON.parse((await ask(`${url}/__budget/snapshot.json`)).body)).toMatchObject({
      counts: { running: 0, finished: 1 },
      requests: [
        {
          method: 'GET',
          path: '/ours',
          outcome: 'ok',
          status: 200,
          bars: [[expect.any(Number), expect.any(Number), 0, 'ok']],
        },
      ],
      operations: [{ name: 'retrieve', count: 1 }],
    })
  },
)
