import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deadline } from '@timebudget/express'
import { governedFetch, type LlmCall } from '@timebudget/llm'
import express, { type Request, type Response } from 'express'
import OpenAI from 'openai'

/** A service in front of a model: hands its words on as they come, or all at once. */
export interface Gateway extends AsyncDisposable {
  readonly url: string
  /** What became of its calls to the model. */
  readonly calls: readonly LlmCall[]
}

/** What the gateway is asked: a path of `/words` for a stream, `/answer` for a whole answer. */
export interface Question {
  readonly prompt: string
  /** Tokens after which the model stops; it never does so by itself. */
  readonly limit?: number
}

/** A gateway to the model at that URL. */
export async function startGateway(modelUrl: string): Promise<Gateway> {
  const calls: LlmCall[] = []
  const client = new OpenAI({
    baseURL: `${modelUrl}/v1`,
    apiKey: 'any',
    maxRetries: 0,
    fetch: governedFetch({ profile: 'chat', onCall: (call) => calls.push(call) }),
  })
  const app = express()
  app.set('env', 'test') // Express logs no errors
  app.use(deadline({ default: '30s' }), express.json())

  app.post('/words', async (request: Request<object, unknown, Question>, response: Response) => {
    const stream = await client.chat.completions.create({ ...paramsOf(request.body), stream: true })
    response.type('text/plain')
    for await (const { choices } of stream) response.write(choices[0]?.delta.content ?? '')
    response.end()
  })
  app.post('/answer', async (request: Request<object, unknown, Question>, response: Response) => {
    const { choices } = await client.chat.completions.create(paramsOf(request.body))
    response.type('text/plain').send(choices[0]?.message.content)
  })

  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function paramsOf({ prompt, limit }: Question): {
  model: string
  messages: { role: 'user'; content: string }[]
  max_tokens: number | null
} {
  return { model: 'random-words', messages: [{ role: 'user', content: prompt }], max_tokens: limit ?? null }
}
