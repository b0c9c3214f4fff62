import type { FastifyInstance } from 'fastify'
import { afterEach } from 'vitest'
import { chatServer } from '../src/chat-server.ts'
import { Decoder, type DecoderStats } from '../src/decoder.ts'

const running: FastifyInstance[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()))
})

/** Starts a chat server for the length of a test and gives its URL. */
export async function startChatServer(
  options: { slots?: number; msPerToken?: number; budgeted?: boolean; floor?: number } = {},
): Promise<string> {
  const { slots = 2, msPerToken = 1, budgeted = false, floor = 0 } = options
  const app = await chatServer({ decoder: new Decoder({ slots, msPerToken }), budgeted, floor })
  running.push(app)
  return app.listen({ port: 0, host: '127.0.0.1' })
}

/** A request that every chat server can answer. */
export const question = { model: 'stand-in', messages: [{ role: 'user', content: 'What is a floor?' }] }

/** Asks for a chat completion; a string is sent as it is. */
export async function ask(
  url: string,
  body: unknown,
  options: { readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  const { headers, ...init } = options
  return fetch(`${url}/v1/chat/completions`, {
    ...init,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** What the tests read of a completion. */
export interface Completion {
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
  readonly usage: { readonly completion_tokens: number; readonly total_tokens: number }
}

/** Asks for a whole answer and reads it. */
export async function askForAnswer(url: string, body: unknown): Promise<Completion> {
  const response = await ask(url, body)
  return (await response.json()) as Completion
}

/** What the tests read of a chunk. */
export interface Chunk {
  readonly id: string
  readonly created: number
  readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string } }>
  readonly usage?: object | null
}

/** The chunks of a streamed answer, and the data of its last event. */
export async function readChunks(response: Response): Promise<{ chunks: Chunk[]; end: string | undefined }> {
  const events = (await response.text()).split('\n\n')
  if (events.pop() !== '') throw new Error('the last event has no end')
  const data = events.map((event) => event.replace(/^data: /, ''))
  const end = data.pop()
  return { chunks: data.map((text) => JSON.parse(text) as Chunk), end }
}

/** What the server tells of its decoding. */
export async function statsOf(url: string): Promise<DecoderStats> {
  const response = await fetch(`${url}/stats`)
  return (await response.json()) as DecoderStats
}
