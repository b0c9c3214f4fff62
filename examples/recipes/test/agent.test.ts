import type { IncomingHttpHeaders } from 'node:http'
import { slowUpstream } from '@timebudget/core/testing'
import {
  errorAnswer,
  localProvider,
  neverAnswers,
  type ProviderRequest,
  type Script,
} from '@timebudget/llm/testing'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { portOf } from './support/port-of.ts'

const callsSearch: Script = { steps: [{ tool: { name: 'search', arguments: ['{"words":', '"tea"}'] } }] }
const says = (text: string): Script => ({ steps: [{ text }] })

let play = (_request: ProviderRequest): Script => neverAnswers()
const provider = await localProvider({ script: (asked) => play(asked) })
const index = await slowUpstream({ delay: '100ms', body: 'Tea is in aisle 3.' })
const silent = await slowUpstream()
process.env['PORT'] = '0'
process.env['INDEX_URL'] = index.url.slice(0, -1)
process.env['OPENAI_API_KEY'] = 'any'
process.env['OPENAI_BASE_URL'] = provider.openaiUrl
const tools = await import('../src/mcp-server.ts')
process.env['MCP_URL'] = `http://127.0.0.1:${await portOf(tools.server)}`
const { server } = await import('../src/agent.ts')
const url = `http://127.0.0.1:${await portOf(server)}`
afterAll(async () => {
  for (const one of [server, tools.server]) {
    one.closeAllConnections()
    one.close()
  }
  await Promise.all([provider.close(), index.close(), silent.close()])
})

afterEach(() => {
  process.env['INDEX_URL'] = index.url.slice(0, -1)
})

interface Asked {
  readonly budget: number
  readonly signal?: AbortSignal
}

async function ask({ budget, signal }: Asked): Promise<Response> {
  const headers = { 'x-request-timeout-ms': String(budget) }
  return fetch(url, { method: 'POST', body: 'Where is the tea?', headers, ...(signal && { signal }) })
}

function leftFor({ headers }: { readonly headers: IncomingHttpHeaders }): number {
  return Number(headers['x-request-timeout-ms'])
}

test('the calls of a model and of its tools share one deadline', async () => {
  play = ({ body }) => (JSON.stringify(body).includes('aisle 3') ? says('In aisle 3.') : callsSearch)
  const answer = await ask({ budget: 10_000 })
  expect([answer.status, await answer.text()]).toEqual([200, 'In aisle 3.'])
  const before = leftFor(await provider.nextRequest())
  const tool = leftFor(await index.nextRequest())
  const after = leftFor(await provider.nextRequest())
  expect(before).toBeLessThanOrEqual(10_000 - 200) // the rule's reserve
  expect(tool).toBeLessThanOrEqual(before - 2_000) // time for an answer
  expect(after).toBeLessThanOrEqual(before - 100) // what the tool took
  expect(after).toBeGreaterThan(tool)
})

test('a tool that takes too long is ended while there is time for an answer without it', async () => {
  process.env['INDEX_URL'] = silent.url.slice(0, -1)
  play = ({ body }) => (body['tool_choice'] === 'none' ? says('I could not look that up.') : callsSearch)
  const asking = provider.requests.length
  const answer = await ask({ budget: 3_500 })
  expect([answer.status, await answer.text()]).toEqual([200, 'I could not look that up.'])
  expect(await (await silent.nextRequest()).abandoned).toBe(true)
  expect((await provider.nextRequest()).body['tool_choice']).toBe('auto')
  expect((await provider.nextRequest()).body['tool_choice']).toBe('none')
  expect(provider.requests).toHaveLength(asking + 2)
})

test('a model that takes too long is ended, and a rule answers before the deadline', async () => {
  play = neverAnswers
  const answer = await ask({ budget: 800 })
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('Please ask again')])
  expect(answer.headers.get('x-degraded')).toContain('rule')
  const { closed } = await provider.nextRequest()
  expect(await closed).toMatchObject({ byClient: true })
})

test('a provider that fails is asked again by the ladder alone', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined) // the AI SDK tells of it there
  play = () => errorAnswer(503)
  const asking = provider.requests.length
  const answer = await ask({ budget: 20_000 })
  expect(await answer.text()).toContain('Please ask again')
  expect(provider.requests).toHaveLength(asking + 2)
  for (const _ of [1, 2]) await provider.nextRequest()
})

test('a user who leaves ends the tool that runs for the agent, and no model is asked again', async () => {
  process.env['INDEX_URL'] = silent.url.slice(0, -1)
  play = () => callsSearch
  const user = new AbortController()
  const asked = ask({ budget: 30_000, signal: user.signal })
  const { abandoned } = await silent.nextRequest()
  await provider.nextRequest()
  user.abort()
  await expect(asked).rejects.toThrow('aborted')
  expect(await abandoned).toBe(true)
  const asking = provider.requests.length
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(provider.requests).toHaveLength(asking)
})

test('a user who leaves ends the call of the model', async () => {
  play = neverAnswers
  const user = new AbortController()
  const asked = ask({ budget: 30_000, signal: user.signal })
  const { closed } = await provider.nextRequest()
  user.abort()
  await expect(asked).rejects.toThrow('aborted')
  expect(await closed).toMatchObject({ byClient: true })
})
