import type { LookupFunction } from 'node:net'
import { expect, test } from 'vitest'
import { Agent, fetch as fetch7 } from 'undici'
import { type ClientOptions, type Fetch, type FetchCall, wrapFetch } from '../src/fetch.ts'
import { deadlineInterceptor } from '../src/undici.ts'
import { underDeadline } from './support/calls.ts'
import { through } from './support/fetches.ts'
import { serveHttp } from './support/servers.ts'

test.each([
  { options: { propagateTo: 'api.example' }, names: /^propagateTo: / },
  { options: { trust: [7] }, names: /^trust: / },
  { options: { trust: [''] }, names: /^trust: / },
  { options: { emit: ['x-deadline'] }, names: /^emit: no codec is called 'x-deadline'/ },
])('unreadable options throw a TypeError that names the option: $names', ({ options, names }) => {
  const unreadable = options as unknown as ClientOptions<FetchCall>
  expect(() => wrapFetch(undefined, unreadable)).toThrow(names)
  expect(() => deadlineInterceptor(unreadable as ClientOptions<unknown>)).toThrow(TypeError)
})

test('a name that leads to this machine is a stranger, unless it is trusted', async () => {
  await using server = await serveHttp((_request, response) =>
    response.writeHead(200, { 'server-timing': 'retrieve;dur=1' }).end(),
  )
  const lookup: LookupFunction = (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }])
  const agent = new Agent({ connect: { lookup } })
  const entriesWith = (options: ClientOptions<FetchCall>): Promise<number> =>
    underDeadline(2_000, async (deadline) => {
      const governed = wrapFetch(fetch7 as unknown as Fetch, options)
      const url = server.url.replace('127.0.0.1', 'metadata.example')
      await (await governed(url, through(agent))).text()
      return deadline.ledger.entries.length
    })
  expect(await entriesWith({})).toBe(1)
  expect(await entriesWith({ trust: ['metadata.example'] })).toBe(2)
  await agent.destroy()
})
