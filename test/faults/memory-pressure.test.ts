import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'
import { Service } from './service.ts'

const cramped = {
  nodeArguments: [
    '--expose-gc',
    '--max-old-space-size=64',
    '--import',
    fileURLToPath(new URL('memory-pressure.mjs', import.meta.url)),
  ],
}

function behind({ port }: Service): { readonly upstream: string } {
  return { upstream: `http://127.0.0.1:${port}` }
}

test('in small heaps whose collectors never rest, every call ends with its deadline or its client', async () => {
  // it keeps no deadline of its own: what it is at ends only when it is hung up on
  await using leaf = await Service.start({ options: { default: '60s', trust: 'ignore' } })
  await using middle = await Service.start({ framework: 'koa', ...behind(leaf) }, cramped)
  await using entry = await Service.start({ framework: 'express', ...behind(middle) }, cramped)
  const { port } = entry
  const count = 60
  const clients = await Promise.all(Array.from({ length: count }, () => RawClient.to({ port })))
  const isLeaving = (index: number): boolean => index % 2 === 0
  for (const [index, client] of clients.entries()) {
    const patience = isLeaving(index) ? 60_000 : 3_000
    client.get(index % 3 === 0 ? '/half' : '/silent', { 'X-Request-Timeout-Ms': patience })
  }
  await entry.report('entered', {}, count)
  for (const [index, client] of clients.entries()) if (isLeaving(index)) client.reset()

  await entry.report('finished', { outcome: 'client_closed' }, count / 2)
  await entry.report('finished', { outcome: 'deadline_exceeded' }, count / 2)
  for (const [index, client] of clients.entries()) {
    if (isLeaving(index)) continue
    const answers = await client.answered()
    expect(answers).toHaveLength(1)
    expect(answers[0]).toSatisfy(({ status, isWhole }) => status === 504 || (status === 200 && !isWhole))
    client[Symbol.dispose]()
  }
  for (const service of [middle, leaf]) {
    await expect.poll(() => service.running, { timeout: 30_000 }).toBe(0)
    expect(service.all('finished').length).toBeGreaterThan(0)
  }
  expect(leaf.all('finished', { outcome: 'client_closed' })).toHaveLength(leaf.all('started').length)

  using next = await RawClient.to({ port })
  next.get('/quick', { 'X-Request-Timeout-Ms': 15_000 })
  expect(await next.answered()).toMatchObject([{ status: 200, body: 'done' }])
  for (const service of [entry, middle, leaf]) expect(service.all('crashed')).toEqual([])
}, 60_000)
