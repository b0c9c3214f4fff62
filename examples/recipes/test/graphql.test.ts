import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { portOf } from './support/port-of.ts'

interface Asked {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly abandoned: Promise<boolean>
}

let asked: Asked[] = []
let answer = (_path: string, _response: ServerResponse): void => {}
const shop = createServer((request, response) => {
  const abandoned = once(response, 'close').then(() => !response.writableFinished)
  asked.push({ path: request.url ?? '', headers: request.headers, abandoned })
  answer(request.url ?? '', response)
}).listen(0)
process.env['PORT'] = '0'
process.env['SHOP_URL'] = `http://127.0.0.1:${await portOf(shop)}`
const { server } = await import('../src/graphql.ts')
const url = `http://127.0.0.1:${await portOf(server)}/graphql`
afterAll(() => {
  for (const one of [server, shop]) {
    one.closeAllConnections()
    one.close()
  }
})
// the first query of a process takes longer than any of these has
beforeAll(() => query('{ total(ids: []) }', 60_000))
beforeEach(() => {
  asked = []
})

const answers: Readonly<Record<string, string>> = {
  '/prices?ids=tea,pot': '[4,30]',
  '/reviews/tea': '["hot"]',
  '/reviews/pot': '["round"]',
}

async function query(text: string, budget: number, signal?: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'x-request-timeout-ms': String(budget) }
  const body = JSON.stringify({ query: text })
  return fetch(url, { method: 'POST', body, headers, ...(signal && { signal }) })
}

test('a query is one budget: all that it calls is told what is left, and keys are asked for together', async () => {
  answer = (path, response) => response.end(answers[path])
  const answered = await query(
    '{ products(ids: ["tea", "pot"]) { id reviews } total(ids: ["tea", "pot"]) }',
    5_000,
  )
  expect(await answered.json()).toEqual({
    data: {
      products: [
        { id: 'tea', reviews: ['hot'] },
        { id: 'pot', reviews: ['round'] },
      ],
      total: 34,
    },
  })
  expect(asked.map(({ path }) => path).sort()).toEqual(Object.keys(answers).sort())
  for (const { headers } of asked) {
    const left = Number(headers['x-request-timeout-ms'])
    expect(left).toBeGreaterThan(3_000)
    expect(left).toBeLessThanOrEqual(5_000)
  }
})

// the 200 ms that are left for the answer may not do on a machine that others keep busy
test(
  'fields that there is no time for are null, with the reason, and the others are answered',
  { retry: 2 },
  async () => {
    answer = (path, response) => void (path.startsWith('/reviews') || response.end(answers[path]))
    const answered = await query(
      '{ products(ids: ["tea", "pot"]) { reviews } total(ids: ["tea", "pot"]) }',
      1_000,
    )
    expect(answered.status).toBe(200)
    const { data, errors } = await answered.json()
    expect(data).toEqual({
      products: [{ reviews: null }, { reviews: null }],
      total: 34,
    })
    expect(errors).toHaveLength(2)
    expect(errors).toContainEqual(
      expect.objectContaining({
        path: ['products', 1, 'reviews'],
        extensions: { code: 'OPERATION_TIMEOUT' },
      }),
    )
    const reviews = asked.filter(({ path }) => path.startsWith('/reviews'))
    expect(await Promise.all(reviews.map(({ abandoned }) => abandoned))).toEqual([true, true])
  },
)

test('a field with less time left than it is worth is not begun', { retry: 2 }, async () => {
  answer = (path, response) => response.end(answers[path])
  const answered = await query('{ products(ids: ["tea"]) { id reviews } }', 240)
  expect(await answered.json()).toMatchObject({
    data: { products: [{ id: 'tea', reviews: null }] },
    errors: [{ extensions: { code: 'BUDGET_TOO_SMALL' } }],
  })
  expect(asked).toEqual([])
})

test('a batch goes on for the fields that have time when that of the first one is up', async () => {
  answer = (path, response) => void setTimeout(() => response.end(answers[path]), 500)
  const answered = await query(
    '{ products(ids: ["tea", "pot"]) { price } total(ids: ["tea", "pot"]) }',
    5_000,
  )
  expect(await answered.json()).toMatchObject({
    data: { products: [{ price: null }, { price: null }], total: 34 },
    errors: [{ extensions: { code: 'OPERATION_TIMEOUT' } }, { extensions: { code: 'OPERATION_TIMEOUT' } }],
  })
})

test('a client that leaves ends the calls of its query', async () => {
  const client = new AbortController()
  const arrived = new Promise<void>((resolve) => (answer = () => resolve()))
  const answered = query('{ total(ids: ["tea"]) }', 30_000, client.signal)
  await arrived
  client.abort()
  await expect(answered).rejects.toThrow('aborted')
  expect(await asked[0]?.abandoned).toBe(true)
})
