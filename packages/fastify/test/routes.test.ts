import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import { deadline, type RouteDeadline } from '@timebudget/fastify'
import { forever } from '../../core/test/server/waiting.ts'

const showBudget = async (request: { deadline: { budget: number } }): Promise<string> =>
  String(Math.round(request.deadline.budget / 100))

async function bodyOf(app: FastifyInstance, url: string): Promise<string> {
  return (await app.inject(url)).body
}

describe('a route’s config.deadline', () => {
  test('gives the route less time, as a duration or as options, and never more', async () => {
    const app = fastify()
    await app.register(deadline, { default: '3s' })
    const routes: Readonly<Record<string, RouteDeadline>> = {
      '/text': '1s',
      '/number': 900,
      '/options': { default: '800ms' },
      '/more': '1h',
    }
    for (const [url, config] of Object.entries(routes))
      app.get(url, { config: { deadline: config } }, showBudget)
    app.get('/none', showBudget)
    expect(await bodyOf(app, '/text')).toBe('10')
    expect(await bodyOf(app, '/number')).toBe('9')
    expect(await bodyOf(app, '/options')).toBe('8')
    expect(await bodyOf(app, '/more')).toBe('30')
    expect(await bodyOf(app, '/none')).toBe('30')
    await app.close()
  })

  test('ends the request at its own time', async () => {
    const app = fastify()
    await app.register(deadline)
    app.get('/', { config: { deadline: 50 } }, forever)
    expect(await app.inject('/')).toMatchObject({ statusCode: 504 })
    await app.close()
  })

  test('counts for routes that were there before the plugin was loaded', async () => {
    const app = fastify()
    app.register(deadline)
    app.get('/', { config: { deadline: '1s' } }, showBudget)
    expect(await bodyOf(app, '/')).toBe('10')
    await app.close()
  })

  test('law 6: that cannot be read is refused by its name', async () => {
    const app = fastify()
    await app.register(deadline)
    expect(() => app.get('/', { config: { deadline: 'soon' } }, forever)).toThrow(/^default: .*'soon'/)
    await app.close()
  })

  test('law 6: that cannot be read fails the request, not the process, if the plugin came too late to see it', async () => {
    const app = fastify()
    app.register(deadline)
    app.get('/', { config: { deadline: 'soon' } }, forever)
    expect(await app.inject('/')).toMatchObject({ statusCode: 500 })
    await app.close()
  })

  test('leaves unknown routes under the plugin’s own budget', async () => {
    const app = fastify()
    await app.register(deadline, { default: 60 })
    app.setNotFoundHandler(async (request) => {
      await forever()
      return request.url
    })
    expect(await app.inject('/nowhere')).toMatchObject({ statusCode: 504 })
    await app.close()
  })
})

describe('the plugin', () => {
  test('tightens in an inner scope, for what is in it', async () => {
    const app = fastify()
    await app.register(deadline, { default: '4s' })
    app.get('/outer', showBudget)
    await app.register(
      async (scope) => {
        await scope.register(deadline, { default: '2s' })
        scope.get('/all', showBudget)
        scope.get('/one', { config: { deadline: '1s' } }, showBudget)
      },
      { prefix: '/inner' },
    )
    expect(await bodyOf(app, '/outer')).toBe('40')
    expect(await bodyOf(app, '/inner/all')).toBe('20')
    expect(await bodyOf(app, '/inner/one')).toBe('10')
    await app.close()
  })

  test('serves two scopes side by side, each with its own budget', async () => {
    const app = fastify()
    for (const [prefix, budget] of [
      ['/a', '1s'],
      ['/b', '2s'],
    ] as const) {
      await app.register(
        async (scope) => {
          await scope.register(deadline, { default: budget })
          scope.get('/', { config: { deadline: '60s' } }, showBudget)
        },
        { prefix },
      )
    }
    expect(await bodyOf(app, '/a/')).toBe('10')
    expect(await bodyOf(app, '/b/')).toBe('20')
    await app.close()
  })

  test('takes the options by which Fastify registers a plugin', async () => {
    const app = fastify()
    await app.register(deadline, { default: '1s', prefix: '/x', logLevel: 'warn' })
    await app.close()
  })

  test('law 6: refuses an option that is unknown or unreadable, by its name', async () => {
    await expect(fastify().register(deadline, { default: 'soon' }).ready()).rejects.toThrow(/^default: /)
    await expect(
      fastify()
        .register(deadline, { timeout: 1 } as never)
        .ready(),
    ).rejects.toThrow(/^timeout: /)
  })
})
