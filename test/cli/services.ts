import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { operation } from '@timebudget/core'
import type { ServerOptions } from '@timebudget/core/server'
import { deadline as expressDeadline, deadlineErrors } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { afterEach } from 'vitest'

const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** Serves until the test ends, and says where. */
export async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}/`
}

/** A server of node:http alone. */
export function serve(listener: RequestListener): Promise<string> {
  return listen(createServer(listener))
}

/** A server that writes these bytes to whoever connects and speaks, and leaves the connection open unless told to end it. */
export function serveBytes(bytes: string, { end = false } = {}): Promise<string> {
  return listen(
    createTcpServer((socket) => {
      socket.once('data', () => {
        socket.write(bytes, 'latin1')
        if (end) socket.end()
      })
    }),
  )
}

/** What a service does for a request; its result becomes the answer. */
export type Work = (signal: AbortSignal) => Promise<object>

const frameworks = {
  async express(work: Work, options: ServerOptions): Promise<string> {
    const app = express()
    app.use(expressDeadline(options))
    app.use(async (request, response) => {
      response.json(await work(request.deadline.signal))
    })
    app.use(deadlineErrors())
    return serve(app)
  },
  async koa(work: Work, options: ServerOptions): Promise<string> {
    const app = new Koa()
    app.silent = true
    app.use(koaDeadline(options))
    app.use(async (context) => {
      context.body = await work(context.deadline.signal)
    })
    return serve(app.callback())
  },
  async fastify(work: Work, options: ServerOptions): Promise<string> {
    const app = fastify()
    await app.register(fastifyDeadline, options)
    app.all('/*', (request) => work(request.deadline.signal))
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    closers.push(() => {
      app.server.closeAllConnections()
      return app.close()
    })
    return `${url}/`
  },
}

/** The frameworks that there are services for. */
export const frameworkNames = ['express', 'koa', 'fastify'] as const

/** A service with `deadline()` that does this for every request. */
export function serviceWith(
  framework: (typeof frameworkNames)[number],
  work: Work,
  options: ServerOptions = {},
): Promise<string> {
  return frameworks[framework](work, options)
}

/** Two operations one after the other, the first with one inside it. */
export async function retrieveAndGenerate(generating: number): Promise<object> {
  await operation('retrieve', {}, async () => {
    await operation('embed', {}, ({ signal }) => wait(20, undefined, { signal }))
    await wait(20)
  })
  await operation('generate', {}, ({ signal }) => wait(generating, undefined, { signal }))
  return { answer: 42 }
}
