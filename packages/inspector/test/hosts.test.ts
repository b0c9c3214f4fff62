import { createServer } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { beforeAll, describe, expect, test } from 'vitest'
import { inspector, type Inspector } from '../src/index.ts'
import { buildPage } from './support/built-page.ts'
import { ask, listening, onEnd } from './support/server.ts'

beforeAll(buildPage)

/** A server with the inspector under `/__budget` and an `/ours` of its own. */
type Build = (inspect: Inspector) => Promise<string>

const hosts: Readonly<Record<string, Build>> = {
  async 'express, mounted'(inspect) {
    const app = express()
    app.use('/__budget', inspect)
    app.get('/ours', (_request, response) => void response.send('ours'))
    return listening(createServer(app))
  },
  async 'express, by its own path'(inspect) {
    const app = express()
    app.use(inspect)
    app.get('/ours', (_request, response) => void response.send('ours'))
    return listening(createServer(app))
  },
  async koa(inspect) {
    const app = new Koa()
    app.use(inspect)
    app.use((context) => {
      if (context.path === '/ours') context.body = 'ours'
    })
    return listening(createServer(app.callback()))
  },
  async 'fastify, under a prefix'(inspect) {
    const app = fastify({ forceCloseConnections: true })
    await app.register(inspect, { prefix: '/__budget' })
    app.get('/ours', () => 'ours')
    onEnd(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  async 'fastify, by its own path'(inspect) {
    const app = fastify({ forceCloseConnections: true })
    await app.register(inspect)
    app.get('/ours', () => 'ours')
    onEnd(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  async 'node:http'(inspect) {
    return listening(
      createServer((request, response) =>
        inspect(request, response, () => {
          if (request.url === '/ours') response.end('ours')
          else response.writeHead(404).end()
        }),
      ),
    )
  },
}

test.each([
  [
    'express',
    '/api/__budget',
    async (inspect: Inspector) => {
      const app = express()
      const api = express.Router()
      api.use(inspect)
      api.get('/ours', (_request, response) => void response.send('ours'))
      app.use('/api', api)
      return listening(createServer(app))
    },
  ],
  [
    'fastify',
    '/api/__budget',
    async (inspect: Inspector) => {
      const app = fastify({ forceCloseConnections: true })
      await app.register(
        async (api) => {
          await api.register(inspect)
          api.get('/ours', () => 'ours')
        },
        { prefix: '/api' },
      )
      onEnd(() => app.close())
      return app.listen({ port: 0, host: '127.0.0.1' })
    },
  ],
] as const)(
  "in a router of %s that is mounted it is at %s, and takes none of what is the router's",
  async (_name, place, build) => {
    const inspect = inspector()
    onEnd(() => inspect.close())
    const url = await build(inspect)
    expect(await ask(url + place)).toMatchObject({ status: 308, headers: { location: '__budget/' } })
    for (const file of ['/', '/main.js', '/snapshot.json'])
      expect((await ask(url + place + file)).status).toBe(200)
    expect((await ask(`${url}${place}/none`)).status).toBe(404)
    expect(await ask(`${url}/api/ours`)).toMatchObject({ status: 200, body: 'ours' })
  },
)

describe.each(Object.entries(hosts))('on %s', (_name, build) => {
  test('the page is there, its files, and the rest of the application', async () => {
    const inspect = inspector()
    onEnd(() => inspect.close())
    const url = await build(inspect)
    expect(await ask(`${url}/__budget`)).toMatchObject({ status: 308, headers: { location: '__budget/' } })
    for (const path of ['', 'main.js', 'snapshot.json']) {
      const answer = await ask(`${url}/__budget/${path}`)
      expect(answer).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
      const head = await ask(`${url}/__budget/${path}`, { method: 'HEAD' })
      expect(head).toMatchObject({ status: 200, body: '' })
    }
    expect((await ask(`${url}/__budget/`, { method: 'POST' })).status).toBe(405)
    expect((await ask(`${url}/__budget/none`)).status).toBe(404)
    expect(await ask(`${url}/ours`)).toMatchObject({ status: 200, body: 'ours' })
    expect((await ask(`${url}/none`)).status).toBe(404)
  })

  test('a guard that says no leaves nothing to be seen', async () => {
    const inspect = inspector({ guard: () => false })
    onEnd(() => inspect.close())
    const url = await build(inspect)
    for (const path of ['', '/', '/main.js', '/snapshot.json'])
      expect(await ask(`${url}/__budget${path}`)).toMatchObject({ status: 404, body: 'Not Found\n' })
    expect(await ask(`${url}/ours`)).toMatchObject({ status: 200, body: 'ours' })
  })
})
