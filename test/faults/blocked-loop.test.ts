import { setTimeout as sleep } from 'node:timers/promises'
import { slowUpstream } from '@timebudget/core/testing'
import { fetch } from '@timebudget/clients/fetch'
import { expect, test } from 'vitest'
import { serve } from '../../packages/core/test/server/host.ts'
import { nodeHttp } from '../../packages/core/test/server/node-http.ts'
import { block } from '../../packages/core/test/server/waiting.ts'
import { RawClient } from './raw-client.ts'
import { Service } from './service.ts'

test.concurrent.each(['http', 'express', 'koa', 'fastify'] as const)(
  'an event loop that is blocked two seconds past the deadline answers each request once, as it must: %s',
  async (framework) => {
    await using service = await Service.start({ framework })
    const { port } = service
    using waiting = await RawClient.to({ port })
    using blocking = await RawClient.to({ port })
    using queued = await RawClient.to({ port })
    for (const client of [waiting, blocking, queued]) {
      client.get('/quick')
      await client.answered()
    }
    waiting.get('/silent', { 'X-Request-Timeout-Ms': 1_500 })
    await service.report('entered', { path: '/silent' })
    blocking.get('/block?for=2400', { 'X-Request-Timeout-Ms': 400 })
    await sleep(100) // the report of having been entered comes after the block
    queued.get('/quick', { 'X-Request-Timeout-Ms': 10_000 })

    expect((await blocking.answered(2))[1]).toMatchObject({
      status: 504,
      headers: { 'x-deadline-outcome': 'deadline_exceeded' },
      isWhole: true,
    })
    expect((await waiting.answered(2))[1]).toMatchObject({ status: 504, isWhole: true })
    expect((await queued.answered(2))[1]).toMatchObject({ status: 200, body: 'done' })
    await service.report('late', { kind: 'answer' })

    for (const client of [waiting, blocking, queued]) {
      client.get('/quick', { 'X-Request-Timeout-Ms': 10_000 })
      expect((await client.answered(3)).map(({ isWhole }) => isWhole)).toEqual([true, true, true])
      expect(client.answers[2]).toMatchObject({ status: 200, body: 'done' })
    }
    await service.report('finished', {}, 9)
    expect(service.all('finished', { outcome: 'deadline_exceeded' })).toHaveLength(2)
    expect(service.all('crashed')).toEqual([])
  },
  60_000,
)

test('an answer that came while the event loop was blocked past the deadline is too late all the same', async () => {
  await using upstream = await slowUpstream({ delay: 100 })
  const handler = async (): Promise<string> => {
    const response = fetch(upstream.url)
    setTimeout(() => block(2_400), 50)
    return (await response).text()
  }
  await using server = await serve(nodeHttp, { handler })
  using client = await RawClient.to({ port: server.port, host: 'localhost' })
  client.get('/', { 'X-Request-Timeout-Ms': 400 })
  expect(await client.answered()).toMatchObject([{ status: 504, isWhole: true }])
  expect(await server.finished.nth(1)).toMatchObject({ outcome: 'deadline_exceeded', status: 504 })
  client.get('/again', { 'X-Request-Timeout-Ms': 10_000 })
  expect(await client.answered(2)).toMatchObject([{ status: 504 }, { status: 200, body: 'done' }])
})
