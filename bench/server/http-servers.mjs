import { guarded, guardedInContext, raced, withContext } from './floors.mjs'

const text = 'hello world'
const budget = 5_000
const ours = { default: budget }
const contextAlone = 'AsyncLocalStorage.run alone'
export const guardsAlone = 'guarded methods alone'
export const bothAlone = 'both alone'

/** What requests that are never answered wait for, and are held by: else a promise that nobody settles is collected. */
const waiting = []

/**
 * Each framework bare, with timebudget, and with what else is used to bound a request. Bare is the framework alone: the
 * others differ from it by one middleware; what is called alone is a part of ours that nothing can do without. `/held` is
 * never answered.
 */
export const servers = {
  'node:http': {
    bare: () => plain,
    timebudget: async () => (await withDeadline())(plain, ours),
    'timebudget, ambient: false': async () => (await withDeadline())(plain, { ...ours, ambient: false }),
    [contextAlone]: () => (request, response) => withContext(request, () => plain(request, response)),
    [guardsAlone]: () => (request, response) => plain(...guarded(request, response)),
    [bothAlone]: () => (request, response) =>
      guardedInContext(request, response, () => plain(request, response)),
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
    [contextAlone]: () => express([(request, _response, next) => withContext(request, next)]),
    [guardsAlone]: () => express([guardedAndNext]),
    [bothAlone]: () => express([guardedInContext]),
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
    [contextAlone]: () => koa([({ req }, next) => withContext(req, next)]),
    [guardsAlone]: () => koa([({ req, res }, next) => guarded(req, res) && raced(next)]),
    [bothAlone]: () => koa([({ req, res }, next) => guardedInContext(req, res, () => raced(next))]),
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
    [contextAlone]: () => fastify({ plugin: contextPlugin }),
    [guardsAlone]: () => fastify({ plugin: guardingPlugin }),
    [bothAlone]: () => fastify({ plugin: guardingContextPlugin }),
    handlerTimeout: () => fastify({ settings: { handlerTimeout: budget } }),
  },
}

function plain({ url }, response) {
  if (url === '/held') return void waiting.push(response)
  response.setHeader('content-type', 'text/plain')
  response.end(text)
}

function forever() {
  return new Promise((resolve) => waiting.push(resolve))
}

async function contextPlugin(instance) {
  instance.addHook('onRequest', (request, _reply, next) => withContext(request, next))
}
contextPlugin[Symbol.for('skip-override')] = true

async function guardingPlugin(instance) {
  instance.addHook('onRequest', ({ raw }, reply, next) => guardedAndNext(raw, reply.raw, next))
}
guardingPlugin[Symbol.for('skip-override')] = true

async function guardingContextPlugin(instance) {
  instance.addHook('onRequest', ({ raw }, reply, next) => guardedInContext(raw, reply.raw, next))
}
guardingContextPlugin[Symbol.for('skip-override')] = true

function guardedAndNext(request, response, next) {
  guarded(request, response)
  next()
}

async function withDeadline() {
  return (await import('@timebudget/core/server')).withDeadline
}

async function express(middleware) {
  const { default: express } = await import('express')
  const app = express()
  for (const each of middleware) app.use(each)
  app.get('/', (_request, response) => void response.type('text').send(text))
  app.get('/held', (_request, response) => void waiting.push(response))
  return app
}

async function koa(middleware) {
  const { default: Koa } = await import('koa')
  const app = new Koa()
  for (const each of middleware) app.use(each)
  app.use((context) => {
    if (context.path === '/held') return forever()
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
  app.get('/held', forever)
  await app.ready()
  return app.server
}
