// A handler, (request of Node's, its deadline) -> { status, type, body } | undefined, as each framework serves it.
// `undefined`: the handler has broken its response off itself.
import { createServer } from 'node:http'
import { pipeline } from 'node:stream'
import { findTimeBudgetError } from '@timebudget/core'
import { deadlineOf, withDeadline } from '@timebudget/core/server'

export const frameworks = {
  async http(handle, options) {
    return createServer(
      withDeadline(async (request, response) => {
        try {
          write(response, await handle(request, response, deadlineOf(request)))
        } catch (error) {
          if (findTimeBudgetError(error) !== undefined || response.headersSent) throw error
          // what a call without a deadline fails with, as frameworks answer it
          response.writeHead(500).end('failed')
        }
      }, options),
    )
  },
  async express(handle, options) {
    const [{ default: express }, { deadline, deadlineErrors }] = await Promise.all([
      import('express'),
      import('@timebudget/express'),
    ])
    const app = express()
    app.set('env', 'test')
    app.use(deadline(options))
    app.use(async (request, response) => {
      write(response, await handle(request, response, request.deadline))
    })
    app.use(deadlineErrors())
    return createServer(app)
  },
  async koa(handle, options) {
    const [{ default: Koa }, { deadline }] = await Promise.all([import('koa'), import('@timebudget/koa')])
    const app = new Koa()
    app.silent = true
    app.use(deadline(options))
    app.use(async (context) => {
      const answer = await handle(context.req, context.res, context.deadline)
      if (answer === undefined) return
      context.status = answer.status
      context.type = answer.type
      context.body = answer.body
    })
    return createServer(app.callback())
  },
  async fastify(handle, options) {
    const [{ default: fastify }, { deadline }] = await Promise.all([
      import('fastify'),
      import('@timebudget/fastify'),
    ])
    let server
    const app = fastify({ serverFactory: (handler) => (server = createServer(handler)) })
    await app.register(deadline, options)
    app.all('/*', async (request, reply) => {
      const answer = await handle(request.raw, reply.raw, request.deadline)
      if (answer === undefined) return reply.hijack()
      reply.code(answer.status).type(answer.type)
      return answer.body
    })
    await app.ready()
    return server
  },
}

function write(response, answer) {
  if (answer === undefined) return
  const { status, type, body } = answer
  response.writeHead(status, { 'content-type': type })
  if (typeof body === 'string') response.end(body)
  else pipeline(body, response, () => {})
}
