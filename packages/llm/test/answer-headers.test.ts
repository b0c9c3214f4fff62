import { once } from 'node:events'
import { createServer } from 'node:http'
import { UpstreamError } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { answerHeaders, job, ladder, model } from '@timebudget/llm'
import { expect, test } from 'vitest'
import { says } from './support/saying.ts'

test('what is said of an answer that comes too late is not said of the 504 that replaces it', async () => {
  const big = model<string>('big', () => says(new UpstreamError('503')), { attempts: 1 })
  const answers = ladder([big, job<string>({ add: async () => ({ id: '7' }) })])
  let headers: Record<string, string> = {}
  const server = createServer(
    withDeadline(
      async (_, response) => {
        headers = answerHeaders(await answers.run('why?'))
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
        await new Promise(() => undefined)
      },
      { default: '500ms' },
    ),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const reply = await fetch(
    `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
  )
  server.close()
  expect(reply.status).toBe(504)
  expect(Object.keys(headers).sort()).toEqual(['location', 'retry-after', 'x-degraded'])
  expect(Object.keys(headers).filter((name) => reply.headers.has(name))).toEqual([])
})
