import fastify, { type FastifyRequest, type RouteShorthandOptions } from 'fastify'
import { expectTypeOf, test } from 'vitest'
import type { Deadline } from '@timebudget/core'
import { deadline } from '@timebudget/fastify'

test('the request carries a typed deadline that is not to be replaced', () => {
  expectTypeOf<FastifyRequest['deadline']>().toEqualTypeOf<Deadline>()
  // @ts-expect-error -- read-only
  void ((request: FastifyRequest, other: Deadline) => (request.deadline = other))
})

test('the plugin’s and a route’s options are known by name', async () => {
  const app = fastify()
  await app.register(deadline, { default: '3s', prefix: '/api' })
  app.get('/text', { config: { deadline: '1s' } }, ({ deadline: own }) => own.budget)
  app.get('/options', { config: { deadline: { default: '1s', floor: 10 } } }, () => 'done')
  await app.close()
})

test('a route’s deadline is a duration or options, and nothing else', () => {
  expectTypeOf<RouteShorthandOptions['config']>().extract<object>().toHaveProperty('deadline')
  const options: RouteShorthandOptions = { config: { deadline: '1s' } }
  // @ts-expect-error -- neither a duration nor options
  options.config = { deadline: true }
})
