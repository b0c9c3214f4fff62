import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  errorAnswer,
  type LocalProvider,
  localProvider,
  type LocalProviderOptions,
  neverAnswers,
  steadyTokens,
  tokensThenSilence,
} from '@timebudget/llm/testing'
import { chatApp as expressChat } from '../../examples/chat-express/src/chat.ts'
import { chatApp as fastifyChat } from '../../examples/chat-fastify/src/chat.ts'
import { chatApp as koaChat } from '../../examples/chat-koa/src/chat.ts'

interface Provider {
  readonly baseURL: string
  readonly apiKey: string
}

const hosts = [
  { name: 'Express', start: async (provider: Provider) => createServer(expressChat(provider)) },
  { name: 'Koa', start: async (provider: Provider) => createServer(koaChat(provider).callback()) },
  {
    name: 'Fastify',
    async start(provider: Provider): Promise<Server> {
      const app = await fastifyChat(provider)
      await app.ready()
      return createServer((request, response) => app.routing(request, response))
    },
  },
]

interface Chat extends AsyncDisposable {
  readonly provider: LocalProvider
  readonly url: string
  /** The answer's events, in order. */
  ask(headers?: Record<string, string>): Promise<{ readonly event: string; readonly data: Answered }[]>
}

interface Answered {
  readonly text?: string
  readonly rung?: string
  readonly reason?: string
  readonly complete?: boolean
  readonly degraded?: boolean
}

const body = JSON.stringify({ question: 'why?' })
const headers = { 'content-type': 'application/json', 'x-tenant': 'acme' }

async function chatOf(host: (typeof hosts)[number], script: LocalProviderOptions['script']): Promise<Chat> {
  const provider = await localProvider({ script })
  const server = await host.start({ baseURL: provider.openaiUrl, apiKey: 'local' })
  server.listen(0)
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    provider,
    url,
    async ask(more = {}) {
      const response = await fetch(`${url}/chat`, { method: 'POST', headers: { ...headers, ...more }, body })
      expect(response.headers.get('content-type')).toContain('text/event-stream')
      return eventsIn(await response.text())
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await provider.close()
    },
  }
}

function eventsIn(text: string): { readonly event: string; readonly data: Answered }[] {
  return [...text.matchAll(/^event: (.+)\n(?:id: .*\n)?data: (.+)$/gm)].map(
    ([, event = '', data = '{}']) => ({
      event,
      data: JSON.parse(data) as Answered,
    }),
  )
}

function said(events: readonly { readonly event: string; readonly data: Answered }[]): string {
  return events.map(({ event, data }) => (event === 'token' ? (data.text ?? '') : '')).join('')
}

const isBig = (request: { readonly body: Readonly<Record<string, unknown>> }): boolean =>
  request.body['model'] === 'gpt-5'

describe.each(hosts)('the chat on $name', (host) => {
  test('streams the big model’s answer, and says whose it is', async () => {
    await using chat = await chatOf(host, steadyTokens(20, 5))
    const events = await chat.ask()
    expect(events.filter(({ event }) => event === 'token')).toHaveLength(20)
    expect(events.at(-1)).toMatchObject({
      event: 'done',
      data: { rung: 'gpt-5', complete: true, degraded: false },
    })
    expect(await (await fetch(`${chat.url}/costs`)).text()).toMatch(/chat\s+acme\s+gpt-5\s+1\s+0/)
  })

  test('answers by the small model when the big one is down', async () => {
    await using chat = await chatOf(host, (request) => (isBig(request) ? errorAnswer(503) : steadyTokens(3)))
    const done = (await chat.ask()).at(-1)
    expect(done).toMatchObject({
      event: 'done',
      data: { rung: 'gpt-5-mini', degraded: true, reason: 'upstream_error' },
    })
    expect(chat.provider.requests.filter(isBig)).toHaveLength(2)
  })

  test('starts with the small model when there is no time for the big one', async () => {
    await using chat = await chatOf(host, steadyTokens(3))
    const done = (await chat.ask({ 'x-request-timeout-ms': '3000' })).at(-1)
    expect(done).toMatchObject({ data: { rung: 'gpt-5-mini', reason: 'short_circuited' } })
    expect(chat.provider.requests.filter(isBig)).toHaveLength(0)
  })

  test('says a sentence of its own, in time, when no model answers', async () => {
    await using chat = await chatOf(host, neverAnswers())
    const begun = performance.now()
    const events = await chat.ask({ 'x-request-timeout-ms': '1500' })
    expect(said(events)).toContain('takes longer than usual')
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { rung: 'rule', degraded: true } })
    expect(performance.now() - begun).toBeLessThan(3_000)
  })

  test('keeps what a model said before it went silent', async () => {
    await using chat = await chatOf(host, tokensThenSilence(5))
    const events = await chat.ask({ 'x-request-timeout-ms': '2500' })
    expect(events.filter(({ event }) => event === 'token')).toHaveLength(5)
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { complete: false, rung: 'gpt-5-mini' } })
  })

  test('a user who stops stops the model', async () => {
    await using chat = await chatOf(host, steadyTokens(100_000, 5))
    const response = await fetch(`${chat.url}/chat`, { method: 'POST', headers, body })
    const request = await chat.provider.nextRequest()
    await request.sent(10)
    const stopping = await fetch(`${chat.url}/chat?stream=${await streamIdOf(response)}`, {
      method: 'DELETE',
    })
    expect(stopping.status).toBe(204)
    expect(await request.closed).toMatchObject({ byClient: true })
    expect(request.tokensSent).toBeLessThan(1_000)
    expect(chat.provider.requests).toHaveLength(1)
  })

  test('a page that lost its connection comes back for the rest', async () => {
    await using chat = await chatOf(host, steadyTokens(200, 5))
    const controller = new AbortController()
    const asked = { method: 'POST', headers, body, signal: controller.signal }
    const id = await streamIdOf(await fetch(`${chat.url}/chat`, asked))
    controller.abort()
    const rest = await fetch(`${chat.url}/chat?stream=${id}`, { headers: { 'last-event-id': '1' } })
    const events = eventsIn(await rest.text())
    // what has come is the stream's own event, and perhaps tokens that nobody has noted
    expect(events.filter(({ event }) => event === 'token')).toHaveLength(200)
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { rung: 'gpt-5', complete: true } })
    expect(chat.provider.requests).toHaveLength(1)
  })

  test('serves the page', async () => {
    await using chat = await chatOf(host, steadyTokens(1))
    const response = await fetch(chat.url)
    expect(response.headers.get('content-type')).toContain('text/html')
    expect(await response.text()).toContain('<title>Chat</title>')
  })
})

test('a user who leaves without a word stops the model when nobody has come back', async () => {
  const leaving = hosts.map(async (host) => {
    await using chat = await chatOf(host, steadyTokens(100_000, 5))
    const controller = new AbortController()
    const reading = fetch(`${chat.url}/chat`, { method: 'POST', headers, body, signal: controller.signal })
    const request = await chat.provider.nextRequest()
    await request.sent(10)
    await reading
    controller.abort()
    expect(await request.closed).toMatchObject({ byClient: true })
    expect(chat.provider.requests).toHaveLength(1)
  })
  await Promise.all(leaving)
}, 60_000)

/** The id that a stream begins with; its body is left to be read by others. */
async function streamIdOf(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  let text = ''
  while (!text.includes('\n\n')) text += new TextDecoder().decode((await reader?.read())?.value)
  return /"id":"([^"]+)"/.exec(text)?.[1] ?? 'none'
}
