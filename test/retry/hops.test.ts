import { fetch } from '@timebudget/clients/fetch'
import type { Deadline } from '@timebudget/core'
import { deadline } from '@timebudget/express'
import { retry, type RetryOptions } from '@timebudget/resilience'
import express, { type Request, type Response as Answer } from 'express'
import { expect, test } from 'vitest'
import { flakyFor, listen, type Peer } from './flaky-server.ts'

const quick: RetryOptions<Response> = { backoff: { initial: 5 }, budget: null }

interface HopOptions extends RetryOptions<Response> {
  readonly ambient?: boolean
}

/** A service that asks the next one, up to three times, and answers as that did. */
function hop(next: Peer, { ambient = true, ...options }: HopOptions = {}): Promise<Peer> {
  const app = express()
  app.use(deadline({ default: '10s', ambient }))
  app.get('/', async (request: Request, response: Answer) => {
    const under: { readonly deadline?: Deadline } = ambient ? {} : { deadline: request.deadline }
    const answer = await retry(({ signal }) => fetch(next.url, { signal }), {
      ...quick,
      ...under,
      ...options,
    })
    response.status(answer.status).send(await answer.text())
  })
  return listen(app)
}

test.each([{ ambient: true }, { ambient: false }])(
  'of two hops that both retry only one does: what repeats a call already is asked once ($ambient)',
  async (options) => {
    const search = await flakyFor(99)
    const second = await hop(search, options)
    const first = await hop(second, options)
    expect((await globalThis.fetch(first.url)).status).toBe(503)
    expect(second.attempts).toEqual([undefined, '2', '3'])
    // three for the first time, then one each in place of three
    expect(search.attempts).toEqual([undefined, '2', '3', '2', '3'])
  },
)

test('a hop that is called as a retry by its own caller does not retry, unless it is told to', async () => {
  const headers = { 'x-request-attempt': '2' }
  const search = await flakyFor(99)
  const hopOnce = await hop(search)
  await globalThis.fetch(hopOnce.url, { headers })
  expect(search.attempts).toEqual(['2'])
  const stubborn = await hop(search, { nested: true })
  await globalThis.fetch(stubborn.url, { headers })
  expect(search.attempts.slice(1)).toEqual(['2', '2', '3'])
})

test('a hop whose peer recovers answers with what it got, and the hop before it sees no failure', async () => {
  const search = await flakyFor(2)
  const second = await hop(search)
  const first = await hop(second)
  const answer = await globalThis.fetch(first.url)
  expect([answer.status, await answer.text()]).toEqual([200, 'here'])
  expect(second.attempts).toEqual([undefined])
})
