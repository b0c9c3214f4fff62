import Koa, { type Context, type ParameterizedContext } from 'koa'
import Koa2 from 'koa2'
import { expectTypeOf, test } from 'vitest'
import type { Deadline } from '@timebudget/core'
import { deadline } from '@timebudget/koa'

test('the context carries a typed deadline', () => {
  expectTypeOf<Context['deadline']>().toEqualTypeOf<Deadline>()
  expectTypeOf<ParameterizedContext['deadline']>().toEqualTypeOf<Deadline>()
})

test('the middleware fits where Koa 3 and 2 take one', () => {
  new Koa().use(deadline()).use(({ deadline: own }) => void own.budget)
  new Koa2().use(deadline())
})
