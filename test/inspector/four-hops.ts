import { createServer } from 'node:http'
import { fetch } from '@timebudget/clients/fetch'
import { operation } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { deadline as expressDeadline } from '@timebudget/express'
import { deadline as fastifyDeadline } from '@timebudget/fastify'
import { inspector } from '@timebudget/inspector'
import { deadline as koaDeadline } from '@timebudget/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { listen, listening, onEnd, pause } from '../../packages/inspector/test/support/server.ts'

/** An entry on Express, with the inspector on it, then Koa, Fastify and node:http; each has work of its own. */
export async function startFourHops(): Promise<{ url: string }> {
  const rank = await startRank()
  const search = await startSearch(rank)
  const answer = await startAnswer(search)
  const inspect = inspector()
  onEnd(() => inspect.close())
  const app = express()
  app.use(expressDeadline({ default: '30s' }))
  app.use('/__budget', inspect)
  app.get('/ask', async (_request, response) => {
    await operation('session', { timeout: '5s' }, () => pause(15))
    const text = await operation('answer', { reserve: '400ms', floor: '250ms' }, async () =>
      (await fetch(answer)).text(),
    )
    await operation('audit', { timeout: '5s' }, () => pause(20))
    response.send(text)
  })
  return { url: await listening(createServer(app)) }
}

async function startAnswer(search: string): Promise<string> {
  const app = new Koa()
  app.use(koaDeadline())
  app.use(async (context) => {
    const found = await operation('retrieve', { timeout: '20s', floor: '100ms' }, async () =>
      (await fetch(search)).text(),
    )
    await operation('generate', { reserve: '100ms' }, () => pause(160))
    context.body = `answer from ${found}`
  })
  return listen(app.callback())
}

async function startSearch(rank: string): Promise<string> {
  const app = fastify({ forceCloseConnections: true })
  await app.register(fastifyDeadline)
  app.get('/', async () => {
    await operation('embed', { timeout: '5s' }, () => pause(30))
    const vectors = operation('vectors', { timeout: '60ms' }, async () => {
      await pause(400)
      return 'vectors'
    }).catch(() => 'no vectors')
    const ranked = await operation('rerank', { timeout: '15s' }, async () => (await fetch(rank)).text())
    return `${ranked}, ${await vectors}`
  })
  onEnd(() => app.close())
  return app.listen({ port: 0, host: '127.0.0.1' })
}

async function startRank(): Promise<string> {
  return listen(
    withDeadline(async (_request, response) => {
      await operation('score', { timeout: '5s' }, () => pause(45))
      await operation('explain', { floor: '1h' }, () => pause(1)).catch(() => {})
      response.end('ranked')
    }),
  )
}
