// A chain of services that know nothing of telemetry: `node propagating-services.mjs '{ "frameworks": [...], "upstream": ... }'`.
// Each calls the next one, the last the upstream, with the client that the first part of the path names, and tells what it saw.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { fetch as governedFetch } from '@timebudget/clients/fetch'
import { request as governedRequest } from '@timebudget/clients/node-http'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { currentDeadline, deadlineSent, detach } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'

const { frameworks, upstream } = JSON.parse(process.argv[2])
const isPlain = frameworks.includes('esm')
const report = (event, details) => process.send?.({ event, ...details })
const require = createRequire(import.meta.url)
const http = isPlain ? await import('node:http') : require('node:http')

const httpGet = (request) => (url) =>
  new Promise((resolve, reject) => {
    const asked = request(url, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk))
      response.on('end', () => resolve(text)).on('error', reject)
    })
    asked.on('error', reject)
    asked.end()
  })

const undici = isPlain ? undefined : await import('undici')
const agent = undici && new undici.Agent().compose(deadlineInterceptor())
const clients = {
  fetch: async (url) => (await fetch(url)).text(),
  undici: async (url) => (await undici.request(url)).body.text(),
  http: httpGet((...args) => http.request(...args)),
  'governed-fetch': async (url) => (await governedFetch(url)).text(),
  'governed-undici': async (url) => (await undici.request(url, { dispatcher: agent })).body.text(),
  'governed-http': httpGet((...args) => governedRequest(...args)),
}

/** What every framework's handler does. */
const workOf =
  (framework, next) =>
  async (path, { rawHeaders, deadline, places }) => {
    const { budget, expiresAt } = deadline
    report('entered', { framework, path, rawHeaders, budget, left: deadline.remaining(), expiresAt, places })
    const [, client, kind] = path.split('/')
    const call = () => clients[client](new URL(path, next))
    return kind === 'background' ? detach(call) : call()
  }

const isSame = (deadline) => currentDeadline() === deadline

const servers = {
  async express(work) {
    const express = require('express')
    const { deadline } = await import('@timebudget/express')
    const app = express()
    const router = express.Router()
    app.use(deadline({ default: '3s' }), express.json())
    app.use((request, _response, next) => {
      request.places = [isSame(request.deadline)]
      next()
    })
    router.all('/{*path}', async (request, response) => {
      const { path, rawHeaders, places } = request
      places.push(isSame(request.deadline))
      response.send(await work(path, { rawHeaders, deadline: request.deadline, places }))
    })
    app.use(router)
    return createServer(app)
  },
  async koa(work) {
    const Koa = require('koa')
    const { deadline } = await import('@timebudget/koa')
    const app = new Koa()
    app.use(deadline({ default: '3s' }))
    app.use((context, next) => {
      context.places = [isSame(context.deadline)]
      return next()
    })
    app.use(async (context) => {
      const { path, req, places } = context
      places.push(isSame(context.deadline))
      context.body = await work(path, { rawHeaders: req.rawHeaders, deadline: context.deadline, places })
    })
    return createServer(app.callback())
  },
  async fastify(work) {
    const { fastify } = require('fastify')
    const { deadline } = await import('@timebudget/fastify')
    let server
    const app = fastify({ serverFactory: (handler) => (server = createServer(handler)) })
    await app.register(deadline, { default: '3s' })
    const places = new WeakMap()
    const look = (request) => {
      const seen = places.get(request) ?? []
      places.set(request, [...seen, isSame(request.deadline)])
    }
    app.addHook('onRequest', async (request) => look(request))
    app.addHook('preHandler', (request, _reply, done) => {
      look(request)
      done()
    })
    app.addHook('onSend', async (request) => {
      report('sending', { isSame: isSame(request.deadline) })
    })
    app.all('/*', (request) => {
      look(request)
      const { url, raw, deadline: given } = request
      return work(url, { rawHeaders: raw.rawHeaders, deadline: given, places: places.get(request) })
    })
    await app.ready()
    return server
  },
  /** An application that loads nothing of CommonJS, so that no instrumentation of node:http is ever asked to patch it. */
  async esm(work) {
    return createServer(
      withDeadline(
        async (request, response) => {
          const { url: path, rawHeaders } = request
          response.end(await work(path, { rawHeaders, deadline: currentDeadline(), places: [] }))
        },
        { default: '3s' },
      ),
    )
  },
}

deadlineSent.subscribe(({ host, sent }) => report('sent', { host, sent }))
process.on('warning', ({ message }) => report('warned', { message }))
process.on('uncaughtException', (error) => report('crashed', { message: error.message }))
process.on('unhandledRejection', (error) => report('crashed', { message: String(error) }))
process.on('disconnect', () => process.exit(0))
let next = upstream
for (const framework of frameworks.toReversed()) {
  const server = await servers[framework](workOf(framework, next))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  next = `http://127.0.0.1:${server.address().port}/`
}
report('listening', { url: next })
