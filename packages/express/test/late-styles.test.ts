import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import express, { type ErrorRequestHandler, type Request, type Response } from 'express'
import express4 from 'express4'
import { describe, expect, test } from 'vitest'
import { deadline } from '@timebudget/express'
import { begin, call, connection } from '../../core/test/server/client.ts'
import { deferred } from '../../core/test/server/deferred.ts'
import { listenOn } from '../../core/test/server/node-http.ts'
import { aborted, stubborn } from '../../core/test/server/waiting.ts'

type Style = (request: Request, response: Response, next: (error?: unknown) => void) => unknown

const styles: Readonly<Record<string, Style>> = {
  'res.json': (_request, response) => response.json({ late: true }),
  'res.send': (_request, response) => response.send('late'),
  'res.sendStatus': (_request, response) => response.sendStatus(201),
  'res.redirect': (_request, response) => response.redirect('/elsewhere'),
  'res.cookie': (_request, response) => response.cookie('late', '1'),
  'res.set and res.end': (_request, response) => response.set('x-late', '1').status(201).end(),
  'res.sendFile': (_request, response, next) => response.sendFile(fileURLToPath(import.meta.url), next),
  'res.download': (_request, response, next) => response.download(fileURLToPath(import.meta.url), next),
  'res.format': (_request, response) => response.format({ default: () => response.send('late') }),
  'next(error)': (_request, _response, next) => next(new Error('late')),
  'next()': (_request, _response, next) => next(),
}
const ends = ['a callback', 'an async handler'] as const
const frameworks = [
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
] as const

describe.each(frameworks)('%s: a handler that answers late', (name, framework) => {
  const listen = async (style: Style, way: (typeof ends)[number]) => {
    const tried = deferred()
    const app = framework()
    app.set('env', 'test')
    app.use(deadline({ default: 60 }))
    app.get('/quick', (_request, response) => void response.send('quick'))
    app.get('/late', (request, response, next) => {
      const late = async (): Promise<void> => {
        await aborted(request.deadline.signal)
        await stubborn(5)
        if (way === 'a callback') setImmediate(() => style(request, response, next))
        else style(request, response, next)
        setTimeout(tried.resolve, 20)
      }
      return way === 'a callback' ? void late() : late()
    })
    return { ...(await listenOn(createServer(app))), protocol: 'http/1.1' as const, tried: tried.promise }
  }

  for (const way of ends) {
    test.each(Object.entries(styles))(`with %s in ${way} harms nobody`, async (_style, style) => {
      const server = await listen(style, way)
      const kept = connection(server)
      expect(await call(server, { path: '/late', connection: kept })).toMatchObject({ status: 504 })
      await server.tried
      expect(await call(server, { path: '/quick', connection: kept })).toMatchObject({
        status: 200,
        isReused: true,
        body: 'quick',
      })
      kept.close()
      await server.close()
    })
  }

  // Express 4 does not look at what a handler returns
  test.runIf(name === 'Express 5')('by a throw in an async handler harms nobody', async () => {
    const server = await listen(() => {
      throw new Error('late')
    }, 'an async handler')
    const kept = connection(server)
    expect(await call(server, { path: '/late', connection: kept })).toMatchObject({ status: 504 })
    await stubborn(20)
    expect(await call(server, { path: '/quick', connection: kept })).toMatchObject({ status: 200 })
    kept.close()
    await server.close()
  })

  test('or not at all does not use up the error handlers of the next request', async () => {
    const app = framework()
    const errors: unknown[] = []
    app.use(deadline({ default: 40 }))
    app.get('/hang', () => {})
    app.get('/fail', () => {
      throw new Error('at once')
    })
    const onError: ErrorRequestHandler = (error, _request, response, _next) => {
      errors.push(error)
      response.status(418).send('handled')
    }
    app.use(onError)
    const server = { ...(await listenOn(createServer(app))), protocol: 'http/1.1' as const }
    const kept = connection(server)
    expect(await call(server, { path: '/hang', connection: kept })).toMatchObject({ status: 504 })
    expect(await call(server, { path: '/fail', connection: kept })).toMatchObject({
      status: 418,
      body: 'handled',
    })
    expect(errors).toHaveLength(1)
    kept.close()
    await server.close()
  })

  test('because nobody knows the path, while its body is still on its way, harms nobody', async () => {
    const app = framework()
    const late = new EventEmitter()
    app.set('env', 'test')
    app.use(deadline({ default: 60 }))
    app.get('/quick', (_request, response) => void response.send('quick'))
    app.use((request, _response, next) => {
      request.deadline.signal.addEventListener('abort', () => late.once('go', next))
    })
    const server = { ...(await listenOn(createServer(app))), protocol: 'http/1.1' as const }
    const calling = begin(server, { path: '/nowhere', isUploading: true })
    calling.write('half')
    expect(await calling.reply).toMatchObject({ status: 504 })
    late.emit('go')
    calling.end()
    await stubborn(20)
    expect(await call(server, { path: '/quick' })).toMatchObject({ status: 200 })
    await server.close()
  })
})
