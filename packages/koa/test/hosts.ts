import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { bodyParser } from '@koa/bodyparser'
import Koa from 'koa'
import Koa2 from 'koa2'
import { deadline } from '@timebudget/koa'
import type { App, Host } from '../../core/test/server/host.ts'
import { asHttp2Listener, listenOn } from '../../core/test/server/node-http.ts'

export const koa3Host: Host = hostOf('Koa 3', Koa)
export const koa2Host: Host = hostOf('Koa 2', Koa2 as unknown as typeof Koa)
export const koa3Http2Host: Host = {
  name: 'Koa 3',
  protocol: 'h2',
  listen: (app) => listenOn(createHttp2Server(asHttp2Listener(applicationOf(Koa, app).callback()))),
}

function hostOf(name: string, Framework: typeof Koa): Host {
  return {
    name,
    protocol: 'http/1.1',
    listen: (app) => listenOn(createServer(applicationOf(Framework, app).callback())),
  }
}

function applicationOf(Framework: typeof Koa, { handler, options, inner, parsesJson, isRaw }: App): Koa {
  const app = new Framework()
  app.silent = true // else it prints every error
  app.use(deadline(options))
  if (inner !== undefined) app.use(deadline(inner))
  if (parsesJson === true) app.use(bodyParser())
  app.use(async (context) => {
    if (isRaw === true) {
      context.respond = false
      context.res.statusCode = 200 // Koa begins with 404
    }
    const answer = await handler({ request: context.req, response: context.res, deadline: context.deadline })
    if (typeof answer === 'string') context.body = answer
  })
  return app
}
