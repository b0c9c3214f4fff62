import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { refuseUnknownOptions } from '@timebudget/core'
import { anthropicDialect } from './anthropic-dialect.ts'
import type { Asked, Dialect } from './dialect.ts'
import { openaiChatDialect } from './openai-chat-dialect.ts'
import { openaiResponsesDialect } from './openai-responses-dialect.ts'
import { playScript } from './play-script.ts'
import type { Script } from './script.ts'

/** Which API a request is for. */
export type ProviderApi = 'chat' | 'responses' | 'messages'

/** How a connection was left: by the caller before the answer was complete, and when by `performance.now()`. */
export interface Closing {
  readonly byClient: boolean
  readonly at: number
}

/** A request as the provider saw it. */
export interface ProviderRequest {
  readonly api: ProviderApi
  readonly headers: IncomingHttpHeaders
  /** The JSON that was sent. */
  readonly body: Readonly<Record<string, unknown>>
  /** Whether a stream was asked for. */
  readonly streams: boolean
  /** Counts connections from 1: requests with the same number came over the same one. */
  readonly connection: number
  /** Tokens written so far. */
  readonly tokensSent: number
  /** Settles once the answer is complete or the connection has gone. */
  readonly closed: Promise<Closing>
  /** Settles once that many tokens have been written. */
  sent(tokens: number): Promise<void>
}

/** How a local provider answers. */
export interface LocalProviderOptions {
  /** One for every request; several, one for each in turn and the last for all others; or chosen for each request. */
  readonly script?:
    | Script
    | readonly Script[]
    | ((request: ProviderRequest, nth: number) => Script)
    | undefined
  /** Multiplies every duration in the scripts; 1. */
  readonly scale?: number | undefined
  /** Where it listens; any free port by default. */
  readonly port?: number | undefined
}

/** A real server on 127.0.0.1 that speaks OpenAI's and Anthropic's protocols. */
export interface LocalProvider {
  /** For Anthropic's SDK. */
  readonly url: string
  /** `url` with `/v1`, for OpenAI's SDK and those who are like it. */
  readonly openaiUrl: string
  /** Model calls, in the order of their arrival. */
  readonly requests: readonly ProviderRequest[]
  /** Connections that are open now. */
  readonly openConnections: number
  /** The next model call to arrive, or the oldest that nobody has asked for yet. */
  nextRequest(): Promise<ProviderRequest>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const dialects: Readonly<Record<ProviderApi, (asked: Asked) => Dialect>> = {
  chat: openaiChatDialect,
  responses: openaiResponsesDialect,
  messages: anthropicDialect,
}

const apis: Readonly<Record<string, ProviderApi>> = {
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  '/v1/messages': 'messages',
}

/**
 * Starts a provider that answers as its script says, faults included.
 *
 *     const provider = await localProvider({ script: tokensThenSilence(5) })
 *     const client = new OpenAI({ baseURL: provider.openaiUrl, apiKey: 'any' })
 *     await provider.close()
 *
 * It fails if the port is taken.
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export async function localProvider(options: LocalProviderOptions = {}): Promise<LocalProvider> {
  refuseUnknownOptions(options, ['script', 'scale', 'port'] satisfies (keyof LocalProviderOptions)[])
  const { port = 0 } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new TypeError(`port: expected 0 to 65535, got ${String(port)}`)
  const requests: ProviderRequest[] = []
  const waiting: Array<(request: ProviderRequest) => void> = []
  const connections = new Map<Socket, number>()
  let connected = 0
  let taken = 0

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined)
    })
  })
  server.on('connection', (socket) => {
    connected += 1
    connections.set(socket, connected)
    socket.once('close', () => connections.delete(socket))
  })

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    if (request.method === 'GET' && path === '/v1/models') return sendJson(response, 200, modelList)
    const api = request.method === 'POST' ? apis[path] : undefined
    if (api === undefined) return sendJson(response, 404, { error: { message: `no ${path} here` } })
    const text = await readAll(request)
    const body = readObject(text)
    if (body === undefined)
      return sendJson(response, 400, { error: { message: 'the body is no JSON object' } })
    const { model = 'local' } = body
    const seen = new SeenRequest({
      api,
      body,
      headers: request.headers,
      connection: connections.get(request.socket) ?? 0,
      response,
    })
    requests.push(seen)
    const waiter = waiting.shift()
    if (waiter !== undefined) {
      taken += 1
      waiter(seen)
    }
    await playScript(chooseScript(options.script, seen, requests.length - 1), {
      response,
      dialect: dialects[api]({
        model: typeof model === 'string' ? model : 'local',
        includesUsage: includesUsage(body),
      }),
      streams: seen.streams,
      requestLength: text.length,
      scale: options.scale ?? 1,
      headers: api === 'messages' ? { 'request-id': 'req_local' } : { 'x-request-id': 'req_local' },
      onToken: () => seen.countToken(),
    })
  }
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    openaiUrl: `${url}/v1`,
    requests,
    get openConnections() {
      return connections.size
    },
    nextRequest() {
      const request = requests[taken]
      if (request === undefined) return new Promise((resolve) => waiting.push(resolve))
      taken += 1
      return Promise.resolve(request)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

class SeenRequest implements ProviderRequest {
  readonly api: ProviderApi
  readonly headers: IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
  readonly connection: number
  readonly closed: Promise<Closing>
  tokensSent = 0
  readonly #waiting: Array<{ readonly tokens: number; readonly resolve: () => void }> = []

  constructor(
    seen: Pick<ProviderRequest, 'api' | 'headers' | 'body' | 'connection'> & {
      readonly response: ServerResponse
    },
  ) {
    this.api = seen.api
    this.headers = seen.headers
    this.body = seen.body
    this.connection = seen.connection
    const { response } = seen
    this.closed = once(response, 'close').then(() => ({
      byClient: !response.writableFinished,
      at: performance.now(),
    }))
  }

  get streams(): boolean {
    return this.body['stream'] === true
  }

  sent(tokens: number): Promise<void> {
    if (this.tokensSent >= tokens) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ tokens, resolve }))
  }

  countToken(): void {
    this.tokensSent += 1
    for (const { tokens, resolve } of this.#waiting) if (tokens === this.tokensSent) resolve()
  }
}

function chooseScript(script: LocalProviderOptions['script'], request: ProviderRequest, nth: number): Script {
  if (typeof script === 'function') return script(request, nth)
  if (!isList(script)) return script ?? {}
  return script[nth] ?? script.at(-1) ?? {}
}

function isList(script: Script | readonly Script[] | undefined): script is readonly Script[] {
  return Array.isArray(script)
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function includesUsage({ stream_options: options }: Record<string, unknown>): boolean {
  return typeof options === 'object' && options !== null && 'include_usage' in options
    ? options.include_usage === true
    : false
}

const modelList = {
  object: 'list',
  data: [{ id: 'local', object: 'model', created: 1_760_000_000, owned_by: 'local' }],
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
