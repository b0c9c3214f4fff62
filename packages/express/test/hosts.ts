import { createServer } from 'node:http'
import express from 'express'
import express4 from 'express4'
import { deadline, deadlineErrors } from '@timebudget/express'
import type { App, Host } from '../../core/test/server/host.ts'
import { listenOn } from '../../core/test/server/node-http.ts'

export const express5Host: Host = hostOf('Express 5', express)
export const express4Host: Host = hostOf('Express 4', express4 as unknown as typeof express)

function hostOf(name: string, framework: typeof express): Host {
  return {
    name,
    protocol: 'http/1.1',
    listen: (app) => listenOn(createServer(applicationOf(framework, app))),
  }
}

function applicationOf(
  framework: typeof express,
  { handler, options, inner, parsesJson }: App,
): express.Express {
  const app = framework()
  app.set('env', 'test') // else it prints every error
  app.use(deadline(options))
  if (inner !== undefined) app.use(deadline(inner))
  if (parsesJson === true) app.use(framework.json())
  app.use(async (request, response, next) => {
    try {
      const answer = await handler({ request, response, deadline: request.deadline })
      if (typeof answer === 'string') response.send(answer)
    } catch (error) {
      next(error)
    }
  })
  app.use(deadlineErrors())
  return app
}
