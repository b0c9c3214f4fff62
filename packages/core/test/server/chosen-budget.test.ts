import { describe, expect, test } from 'vitest'
import { type Deadline, type RequestFinished, requestFinished } from '@timebudget/core'
import {
  deadlineOf,
  OpenCall,
  resolveCallOptions,
  type ServerOptions,
  withDeadline,
} from '@timebudget/core/server'
import { call, type Target } from './client.ts'
import { listenOn } from './node-http.ts'
import { createServer } from 'node:http'
import { warningsOf } from './warnings.ts'

/** The budget that a path gets. */
async function budgetsOf(
  options: ServerOptions,
  asks: readonly { readonly path: string; readonly headers?: Record<string, string> }[],
): Promise<(number | undefined)[]> {
  const seen: (Deadline | undefined)[] = []
  const listener = withDeadline((request, response) => {
    seen.push(deadlineOf(request))
    response.end()
  }, options)
  const { port, close } = await listenOn(createServer(listener))
  const target: Target = { port, protocol: 'http/1.1' }
  for (const ask of asks) await call(target, ask)
  await close()
  return seen.map((deadline) => deadline?.budget)
}

const longer: ServerOptions['default'] = ({ url }) => (url === '/ask' ? '20s' : '3s')

describe('a default that is a function of the request', () => {
  test('gives each the budget it chooses', async () => {
    const asks = [{ path: '/products' }, { path: '/ask' }, { path: '/products' }]
    expect(await budgetsOf({ default: longer }, asks)).toEqual([3_000, 20_000, 3_000])
  })

  test('chooses for those alone that bring no deadline, and no more than max', async () => {
    const asks = [{ path: '/ask', headers: { 'x-request-timeout-ms': '700' } }, { path: '/ask' }]
    const [brought = 0, chosen] = await budgetsOf({ default: longer, max: '10s' }, asks)
    expect(brought).toBeLessThanOrEqual(700)
    expect(chosen).toBe(10_000)
  })

  test('that chooses nothing leaves it at five seconds', async () => {
    expect(await budgetsOf({ default: () => undefined }, [{ path: '/' }])).toEqual([5_000])
  })

  const failing: Readonly<Record<string, () => unknown>> = {
    'cannot be read': () => 'soon',
    'is negative': () => -1,
    'is a promise': () => Promise.resolve('3s'),
    throws: () => {
      throw new SyntaxError('no choice')
    },
  }
  test.each(Object.entries(failing))('that %s leaves it so too, with a warning', async (_how, choose) => {
    let budgets: unknown
    const warnings = await warningsOf(async () => {
      budgets = await budgetsOf({ default: choose as never }, [{ path: '/' }])
    })
    expect(budgets).toEqual([5_000])
    expect(warnings).toEqual([
      expect.stringMatching(/^default failed: (TypeError: default: expected|SyntaxError)/),
    ])
  })

  test('tightens as another does in a second deadline()', async () => {
    const inner = withDeadline((_request, response) => void response.end(), { default: () => '1s' })
    const finished: RequestFinished[] = []
    const unsubscribe = requestFinished.subscribe((event) => void finished.push(event))
    const { port, close } = await listenOn(createServer(withDeadline(inner, { default: longer })))
    await call({ port, protocol: 'http/1.1' }, { path: '/ask' })
    await close()
    unsubscribe()
    expect(finished[0]?.deadline.budget).toBe(1_000)
  })

  test('chooses for calls of other protocols by their path', () => {
    const options = resolveCallOptions({ default: ({ path }) => (path.endsWith('/Ask') ? '20s' : undefined) })
    const budgetOf = (path: string): number => new OpenCall({ path, headers: {} }, options).deadline.budget
    expect([budgetOf('/shop.Shop/Ask'), budgetOf('/shop.Shop/Find')]).toEqual([20_000, 5_000])
  })
})

describe('a second deadline() that asks for longer than the first gives', () => {
  const nested = async (inner: ServerOptions, outer: ServerOptions, headers: Record<string, string> = {}) => {
    const listener = withDeadline((_request, response) => void response.end(), inner)
    const { port, close } = await listenOn(createServer(withDeadline(listener, outer)))
    const warnings = await warningsOf(async () => {
      for (let time = 0; time < 2; time += 1) await call({ port, protocol: 'http/1.1' }, { headers })
    })
    await close()
    return warnings
  }

  test('says once that it cannot, and what can', async () => {
    expect(await nested({ default: '20s' }, { default: '3s' })).toEqual([
      'a second deadline() only tightens the first: its default of 20000 ms has no effect on a request that has 3000 ms; a function as default of the first gives longer ones',
    ])
  })

  test.each([
    ['it asks for less', { default: '1s' }, { default: '3s' }, {}],
    ['it asks for nothing', { reserve: '1s' }, { default: '3s' }, {}],
    [
      'the caller is who asked for less',
      { default: '20s' },
      { default: '30s' },
      { 'x-request-timeout-ms': '3000' },
    ],
  ])('says nothing where %s', async (_why, inner, outer, headers) => {
    expect(await nested(inner, outer, headers)).toEqual([])
  })
})
