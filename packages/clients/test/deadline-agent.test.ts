import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { expect, test } from 'vitest'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { DeadlineAgent, wrapRequest } from '../src/node-http.ts'
import { codesOf, failureOf, onlyEntry, underDeadline } from './support/calls.ts'
import { answerTo } from './support/node-requests.ts'
import { serveHttp } from './support/servers.ts'

test("connections are the wrapped agent's: kept alive, bounded and visible", async () => {
  await using server = await serveHttp((_asked, response) => response.end('done'))
  const inner = new http.Agent({ keepAlive: true, maxSockets: 2 })
  const agent = new DeadlineAgent({ agent: inner })
  await underDeadline(2_000, async () => {
    for (let turn = 0; turn < 5; turn += 1) await (await answerTo(http.request(server.url, { agent }))).text()
  })
  expect(server.connections).toBe(1)
  expect(agent).toMatchObject({ keepAlive: true, maxSockets: 2, protocol: 'http:', defaultPort: 80 })
  expect(Object.keys(agent.freeSockets)).toEqual(Object.keys(inner.freeSockets))
  expect(Object.keys(agent.freeSockets)).toHaveLength(1)
  agent.destroy()
  expect(
    Object.values(inner.freeSockets)
      .flat()
      .every((socket) => socket?.destroyed),
  ).toBe(true)
})

test('around an agent for https it is one for https', () => {
  const agent = new DeadlineAgent({ agent: new https.Agent() })
  expect(agent).toMatchObject({ protocol: 'https:', defaultPort: 443 })
})

test('a refusal is the error of the request, since libraries do not expect a throw', async () => {
  await using server = await serveHttp((_asked, response) => response.end('done'))
  const agent = new DeadlineAgent({ floor: 500 })
  await underDeadline(300, async (deadline) => {
    const asked = http.get(server.url, { agent })
    expect(codesOf(await failureOf(once(asked, 'response')))).toEqual(['BUDGET_TOO_SMALL'])
    await once(asked, 'close')
    expect(asked.destroyed).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('short_circuited')
  })
  const past = Deadline.at(Date.now() - 1_000)
  const asked = runWithDeadline(past, () => http.get(server.url, { agent }))
  expect(await failureOf(once(asked, 'response'))).toBe(past.reason)
  expect(server.connections).toBe(0)
})

test('below a wrapped request it has nothing more to do', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const agent = new DeadlineAgent()
  const governed = wrapRequest(http.request, { operation: 'search' })
  await underDeadline(2_000, async (deadline) => {
    await (await answerTo(governed(upstream.url, { agent }))).text()
    expect(onlyEntry(deadline)).toMatchObject({ name: 'search', outcome: 'ok' })
  })
  const { headers } = await upstream.nextRequest()
  expect(headers['x-request-timeout-ms']).toMatch(/^\d+$/)
})

test('a request whose headers are written down at once is ended by the deadline all the same', async () => {
  await using upstream = await slowUpstream()
  const agent = new DeadlineAgent()
  await underDeadline(150, async (deadline) => {
    const asked = http.get(upstream.url, { agent, headers: ['host', 'example.com'] as never })
    expect(await failureOf(once(asked, 'response'))).toBe(deadline.reason)
  })
  expect((await upstream.nextRequest()).headers['x-request-timeout-ms']).toBeUndefined()
})

test('an option that cannot be read is named at once', () => {
  expect(() => new DeadlineAgent({ emit: ['nothing' as never] })).toThrow(/^emit: /)
})
