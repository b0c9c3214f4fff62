import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import fastify from 'fastify'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isTimeBudgetError, operation, type TimeBudgetError } from '@timebudget/core'
import { deadline } from '@timebudget/fastify'
import { answerTo } from './answer.ts'
import {
  ChatAnswer,
  chatRequestSchema,
  errorBody,
  promptOf,
  type ChatRequest,
  type FinishReason,
} from './chat-protocol.ts'
import type { Decoder } from './decoder.ts'

/** What a chat server is made of. */
export interface ChatServerOptions {
  readonly decoder: Decoder
  /** Whether requests have deadlines. */
  readonly budgeted: boolean
  /** The least time left, in ms, with which decoding is worth starting. */
  readonly floor: number
}

/** An HTTP server for a decoder that speaks OpenAI's chat completions, streamed and whole, and tells its `/stats`. */
export async function chatServer({ decoder, budgeted, floor }: ChatServerOptions): Promise<FastifyInstance> {
  const app = fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })
  if (budgeted)
    await app.register(deadline, { default: '60s', onExceeded: (error) => ({ body: timeoutBody(error) }) })
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((request, reply) => {
    const message = `Invalid URL (${request.method} ${request.url})`
    return reply.code(404).send(errorBody(message, { type: 'invalid_request_error' }))
  })

  app.get('/stats', () => decoder.stats())

  app.post<{ Body: ChatRequest }>(
    '/v1/chat/completions',
    { schema: { body: chatRequestSchema } },
    async (request, reply) => {
      const { body } = request
      const id = String(request.headers['x-request-id'] ?? request.id)
      const signal = request.deadline?.signal ?? goneSignal(reply.raw)
      const { tokens, finish } = answerTo(
        promptOf(body),
        body.max_completion_tokens ?? body.max_tokens ?? Infinity,
      )
      const answer = new ChatAnswer(body)
      // Joined out here: an operation that is out of time drops what its work brings, and a slot must not get lost.
      const decoding = decoder.join(id, signal)
      try {
        await operation('queue', {}, () => decoding.turn)
        return await operation('decode', { floor }, () => {
          const decoded = decoding.decode(tokens)
          return body.stream
            ? sendEvents(reply, answer.events(decoded, finish))
            : complete(answer, decoded, finish)
        })
      } finally {
        decoding.leave()
      }
    },
  )
  return app
}

async function complete(
  answer: ChatAnswer,
  decoded: AsyncIterable<string>,
  finish: FinishReason,
): Promise<object> {
  const tokens: string[] = []
  for await (const token of decoded) tokens.push(token)
  return answer.completion(tokens, finish)
}

async function sendEvents(reply: FastifyReply, events: AsyncIterable<string>): Promise<FastifyReply> {
  const body = Readable.from(events)
  reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-cache, no-transform')
    .send(body)
  await finished(body)
  return reply
}

// How a server without deadlines hears that nobody waits any more: the connection closes, if its caller closes it.
function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('the caller has closed the connection'))
  })
  return controller.signal
}

function answerError(error: FastifyError, _: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (isTimeBudgetError(error))
    return reply.code(error.status).headers(error.headers).send(timeoutBody(error))
  const status = error.validation === undefined ? (error.statusCode ?? 500) : 400
  const type = status < 500 ? 'invalid_request_error' : 'server_error'
  const param = error.validation?.[0]?.instancePath.slice(1).replaceAll('/', '.')
  return reply.code(status).send(errorBody(error.message, { type, ...(param && { param }) }))
}

function timeoutBody(error: TimeBudgetError): object {
  return errorBody(error.message, { type: 'timeout', code: error.outcome })
}
