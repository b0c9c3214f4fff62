import { deadline } from '@timebudget/koa'
import { type AskModel, CostMeter, governedFetch, ladder, model, openaiChat, rule } from '@timebudget/llm'
import { memoryResume, resumeStream, sse, stopStream } from '@timebudget/sse'
import Koa from 'koa'
import OpenAI from 'openai'
import { createReadStream } from 'node:fs'
import { json } from 'node:stream/consumers'

interface Question {
  readonly question: string
}

const page = new URL('../../chat-express/dist/page.html', import.meta.url)
const prices = { 'gpt-5': { input: 1.25, output: 10 }, 'gpt-5-mini': { input: 0.25, output: 2 } }

/** A chat that always answers within its budget: by the big model, the small one, or a sentence of its own. */
export function chatApp(provider: { readonly baseURL: string; readonly apiKey: string }): Koa {
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
  const app = new Koa()
  app.use(deadline({ default: '18s', max: '60s' }))
  app.use(async (context, next) => {
    if (context.path !== '/chat') return next()
    if (context.method === 'GET') return resumeStream(context, streams)
    if (context.method === 'DELETE') return stopStream(context, streams)
    const { question } = (await json(context.req)) as Question
    const stream = sse(context, { resume: streams })
    const tokens = answers.stream(
      { question: String(question) },
      { tenant: context.get('x-tenant') || undefined, deadline: stream.deadline },
    )
    await stream.pipe(tokens, {
      done: async () => {
        const { text: _, ...answer } = await tokens.answer
        return answer
      },
    })
  })
  app.use((context) => {
    if (context.path === '/costs') context.body = cost.table()
    if (context.path !== '/') return
    context.type = 'html'
    context.body = createReadStream(page)
  })
  return app
}
