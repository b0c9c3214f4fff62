import fastify, { type FastifyInstance } from 'fastify'
import { deadline } from '@timebudget/fastify'
import type { App, Host, Listening } from '../../core/test/server/host.ts'

export const fastifyHost: Host = {
  name: 'Fastify',
  protocol: 'http/1.1',
  answersErrors: false,
  listen: (app) => listen(fastify({ forceCloseConnections: true, exposeHeadRoutes: false }), app),
}

export const fastifyHttp2Host: Host = {
  name: 'Fastify',
  protocol: 'h2',
  answersErrors: false,
  listen: (app) =>
    listen(fastify({ http2: true, exposeHeadRoutes: false }) as unknown as FastifyInstance, app),
}

async function listen(
  app: FastifyInstance,
  { handler, options, inner, parsesJson, isRaw }: App,
): Promise<Listening> {
  await app.register(deadline, options ?? {})
  await app.register(async (scope) => {
    if (inner !== undefined) await scope.register(deadline, inner)
    if (parsesJson !== true) {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    }
    scope.route({
      method: ['GET', 'HEAD', 'POST'],
      url: '/*',
      async handler(request, reply) {
        if (isRaw === true) reply.hijack()
        const answer = await handler({
          request: request.raw,
          response: reply.raw,
          deadline: request.deadline,
        })
        return typeof answer === 'string' ? answer : reply
      },
    })
  })
  await app.listen({ port: 0, host: 'localhost' })
  const address = app.server.address()
  if (typeof address !== 'object' || address === null) throw new Error('it does not listen')
  return { port: address.port, close: () => app.close() }
}
