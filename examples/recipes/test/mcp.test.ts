import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { fetch } from '@timebudget/clients/fetch'
import { ClientClosedError, Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import type { ToolSet } from 'ai'
import { afterAll, expect, test, vi } from 'vitest'
import { portOf } from './support/port-of.ts'

const index = await slowUpstream()
process.env['INDEX_URL'] = index.url.slice(0, -1)
process.env['PORT'] = '0'
const { server } = await import('../src/mcp-server.ts')
const { connect, toolsOf } = await import('../src/mcp-client.ts')
const url = `http://127.0.0.1:${await portOf(server)}/`
const client = await connect(url)
const tools = await toolsOf(client)
afterAll(async () => {
  await client.close()
  server.closeAllConnections()
  server.close()
  await index.close()
})

/** Calls the tool as the AI SDK does. */
async function search(deadline: Deadline, from: ToolSet = tools): Promise<unknown> {
  const execute = from['search']?.execute
  if (execute === undefined) throw new Error('no such tool')
  const options = { toolCallId: 'call-1', messages: [] }
  return runWithDeadline(deadline, async () => execute({ words: 'tea' }, options))
}

test('a call of a tool is told how long it has, and ends then, down to what the tool itself calls', async () => {
  const calls = vi.spyOn(client, 'callTool')
  using deadline = Deadline.after('3s')
  const called = search(deadline)
  const { url: asked, headers, abandoned } = await index.nextRequest()
  expect(asked).toBe('/search?q=tea')
  const left = Number(headers['x-request-timeout-ms'])
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThanOrEqual(1_000)
  // in place of MCP's own minute
  expect(calls.mock.lastCall?.[1]?.timeout).toBeLessThanOrEqual(1_000)
  await expect(called).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT', operation: 'search' })
  expect(await abandoned).toBe(true)
  expect(deadline.remaining()).toBeGreaterThan(1_000)
})

test('a user who leaves ends the call of a tool down to what the tool itself calls', async () => {
  using deadline = Deadline.after('30s')
  const called = search(deadline)
  const { abandoned } = await index.nextRequest()
  deadline.cancel(new ClientClosedError('the user has left'))
  await expect(called).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
  expect(await abandoned).toBe(true)
})

test('a tool that could not be of use any more is not called', async () => {
  using deadline = Deadline.after('2050ms')
  await expect(search(deadline)).rejects.toMatchObject({ code: 'BUDGET_TOO_SMALL' })
})

test('with servers of the older protocol a call that ends is also cancelled by a notification', async () => {
  const posted: string[] = []
  const older = new Client({ name: 'older', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch(input, init) {
      if (typeof init?.body === 'string') posted.push(JSON.parse(init.body).method)
      return fetch(input, init)
    },
  })
  await older.connect(transport)
  expect(older.getNegotiatedProtocolVersion()).toMatch(/^2025/)
  const olderTools = await toolsOf(older)
  using deadline = Deadline.after('3s')
  const called = search(deadline, olderTools)
  const { abandoned } = await index.nextRequest()
  await expect(called).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  expect(await abandoned).toBe(true)
  await expect.poll(() => posted).toContain('notifications/cancelled')
  await older.close()
})
