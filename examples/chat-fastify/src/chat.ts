import { deadline } from '@timebudget/fastify'
import { type AskModel, CostMeter, governedFetch, ladder, model, openaiChat, rule } from '@timebudget/llm'
import { memoryResume, resumeStream, sse, stopStream } from '@timebudget/sse'
import fastify, { type FastifyInstance } from 'fastify'
import { createReadStream } from 'node:fs'
import OpenAI from 'openai'

interface Question {
  readonly question: string
}

const page = new URL('../../chat-express/dist/page.html', import.meta.url)
const prices = { 'gpt-5': { input: 1.25, output: 10 }, 'gpt-5-mini': { input: 0.25, output: 2 } }

/** A chat that always answers within its budget: by the big model, the small one, or a sentence of its own. */
export async function chatApp(provider: {
  readonly baseURL: string
  readonly apiKey: string
}): Promise<FastifyInstance> {
  const cost = new CostMeter({ prices, budgets: { '*': { limit: 5, per: '1d' } } }) // each tenant's, in USD
  const client = new OpenAI({ ...provider, fetch: governedFetch({ profile: 'chat' }), maxRetries: 0 })
  const ask =
    (name: string): AskModel<Question> =>
    ({ question }, scope) =>
      openaiChat(client, { model: name, messages: [{ role: 'user', content: question }] }, scope)
  const answers = ladder(
    [
      model('gpt-5', ask('gpt-5'), { floor: '4s' }),
      model('gpt-5-mini', ask('gpt-5-mini'), { floor: '1s', profile: 'classify' }),
      rule(() => 'That takes longer than usual. Please ask again in a minute.'),
    ],
    { reserve: '200ms', feature: 'chat', cost },
  )

  const streams = memoryResume({ grace: '10s' }) // how long a model goes on for a connection that was lost
  const app = fastify()
  await app.register(deadline, { default: '18s', max: '60s' })
  app.post<{ Body: Question }>('/chat', async ({ body, headers }, reply) => {
    const tenant = headers['x-tenant']?.toString()
    const stream = sse(reply, { resume: streams })
    const { deadline } = stream
    const tokens = answers.stream({ question: String(body.question) }, { tenant, deadline })
    await stream.pipe(tokens, {
      done: async () => {
        const { text: _, ...answer } = await tokens.answer
        return answer
      },
    })
  })
  app.get('/chat', (_request, reply) => resumeStream(reply, streams))
  app.delete('/chat', (_request, reply) => stopStream(reply, streams))
  app.get('/', (_request, reply) => reply.type('text/html').send(createReadStream(page)))
  app.get('/costs', () => cost.table())
  return app
}
