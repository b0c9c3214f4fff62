import express, { type Request } from 'express'
import express4, { type Request as Request4 } from 'express4'
import { expectTypeOf, test } from 'vitest'
import type { Deadline } from '@timebudget/core'
import { deadline, deadlineErrors, type ServerOptions } from '@timebudget/express'

test('the request carries a typed deadline, in Express 5 and 4', () => {
  expectTypeOf<Request['deadline']>().toEqualTypeOf<Deadline>()
  expectTypeOf<Request4['deadline']>().toEqualTypeOf<Deadline>()
})

test('the middleware and the error handler fit where Express 5 and 4 take one', () => {
  express().use(deadline(), deadlineErrors())
  express4().use(deadline(), deadlineErrors())
  express().get(
    '/',
    deadline({ default: '1s' }),
    ({ deadline: own }, response) => void response.json(own.budget),
  )
  express4().get(
    '/',
    deadline({ default: '1s' }),
    ({ deadline: own }, response) => void response.json(own.budget),
  )
})

test('options are known by name and value', () => {
  expectTypeOf(deadline).parameter(0).toEqualTypeOf<ServerOptions | undefined>()
  // @ts-expect-error -- no such option
  void ((): unknown => deadline({ timeout: '5s' }))
  // @ts-expect-error -- no such value
  void ((): unknown => deadline({ late: 'drop' }))
  // @ts-expect-error -- an answer must be there at once
  void ((): unknown => deadline({ onExceeded: () => Promise.resolve({}) }))
})
