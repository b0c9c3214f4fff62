import { OverloadedError, operation } from '@timebudget/core'
import { expect, test } from 'vitest'
import { DeadlineSpanProcessor } from '../src/index.ts'
import { metered } from './metered.ts'
import { serve, traced } from './support/traced.ts'

const never = (): Promise<never> => new Promise(() => {})

test('what was shed, what expired, who left and what waited too long for another are four outcomes, in spans and metrics alike', async () => {
  await using recorded = metered()
  const { spans } = traced(new DeadlineSpanProcessor())
  const handlers: Readonly<Record<string, () => unknown>> = {
    '/shed': () => {
      throw new OverloadedError('too many wait', {})
    },
    '/expired': never,
    '/left': () => {
      leaving.abort()
      return never()
    },
    '/slow': () => operation('ask', { timeout: '20ms' }, never),
  }
  const leaving = new AbortController()
  const url = await serve(async ({ url: path = '' }) => void (await handlers[path]?.()))

  const budget = { headers: { 'x-request-timeout-ms': '300' } }
  const statuses = [
    (await fetch(`${url}/shed`)).status,
    (await fetch(`${url}/expired`, budget)).status,
    await fetch(`${url}/left`, { signal: leaving.signal }).catch(({ name }: Error) => name),
    (await fetch(`${url}/slow`)).status,
  ]
  expect(statuses).toEqual([503, 504, 'AbortError', 504])

  const outcomes = ['shed', 'deadline_exceeded', 'client_closed', 'operation_timeout']
  await expect
    .poll(
      () => spans().flatMap(({ kind, attributes }) => (kind === 1 ? [attributes['deadline.outcome']] : [])),
      {
        timeout: 10_000,
      },
    )
    .toEqual(expect.arrayContaining(outcomes))
  for (const outcome of outcomes)
    await expect.poll(() => recorded.value('deadline.requests', { 'deadline.outcome': outcome })).toBe(1)
  expect(await recorded.value('deadline.requests', { 'deadline.outcome': 'cancelled' })).toBe(0)
})
