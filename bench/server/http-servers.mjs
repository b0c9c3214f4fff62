import { AsyncLocalStorage } from 'node:async_hooks'

const text = 'hello world'
const budget = 5_000
const ours = { default: budget }

/**
 * Each framework bare, with timebudget, and with what else is used to bound a request. Bare is the framework alone: the
 * others differ from it by one middleware. `/held` is never answered.
 */
export const servers = {
  'node:http': {
    bare: () => plain,
    timebudget: async () => (await withDeadline())(plain, ours),
    'timebudget, ambient: false': async () => (await withDeadline())(plain, { ...ours, ambient: false }),
    'AsyncLocalStorage.run alone': () => {
      const storage = new AsyncLocalStorage()
      return (request, response) => storage.run(request, plain, request, response)
    },
    'AbortSignal.timeout and any': () => (request, response) => {
      const left = new AbortController()
      response.on('close', () => left.abort())
      request.deadline = AbortSignal.any([left.signal, AbortSignal.timeout(budget)])
      plain(request, response)
    },
  },
  Express: {
    bare: () => express([]),
    timebudget: async () => express([(await import('@timebudget/express')).deadline(ours)]),
    'timebudget, ambient: false': async () =>
      express([(await import('@timebudget/express')).deadline({ ...ours, ambient: false })]),
    'connect-timeout': async () => express([(await import('connect-timeout')).default(budget)]),
    'express-timeout-handler': async () =>
      express([
        (await import('express-timeout-handler')).default.handler({
          timeout: budget,
          onTimeout: (_request, response) => response.status(503).send('late'),
        }),
      ]),
  },
  Koa: {
    bare: () => koa([]),
    timebudget: async () => koa([(await import('@timebudget/koa')).deadline(ours)]),
    'timebudget, ambient: false': async () =>
      koa([(await import('@timebudget/koa')).deadline({ ...ours, ambient: false })]),
    'koa-timeout-v2': async () => koa([(await import('koa-timeout-v2')).default(budget)]),
  },
  Fastify: {
    bare: () => fastify(),
    timebudget: async () =>
      fastify({ plugin: (await import('@timebudget/fastify')).deadline, options: ours }),
    'timebudget, ambient: false': async () =>
      fastify({
        plugin: (await import('@timebudget/fastify')).deadline,
        options: { ...ours, ambient: false },
      }),
    handlerTimeout: () => fastify({ settings: { handlerTimeout: budget } }),
  },
}

function plain({ url }, response) {
  if (url === '/held') return
  response.setHeader('content-type', 'text/plain')
  response.end(text)
}

async function withDeadline() {
  return (await import('@timebudget/core/server')).withDeadline
}

async function express(middleware) {
  const { default: express } = await import('express')
  const app = express()
  for (const each of middleware) app.use(each)
  app.get('/', (_request, response) => void response.type('text').send(text))
  app.get('/held', () => {})
  return app
}

async function koa(middleware) {
  const { default: Koa } = await import('koa')
  const app = new Koa()
  for (const each of middleware) app.use(each)
  app.use((context) => {
    if (context.path === '/held') return new Promise(() => {})
    context.body = text
    return undefined
  })
  return app.callback()
}

async function fastify({ settings, plugin, options } = {}) {
  const { default: Fastify } = await import('fastify')
  const app = Fastify(settings)
  if (plugin !== undefined) await app.register(plugin, options)
  app.get('/', async () => text)
  app.get('/held', () => new Promise(() => {}))
  await app.ready()
  return app.server
}
