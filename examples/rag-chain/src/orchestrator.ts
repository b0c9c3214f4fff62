import { json } from 'node:stream/consumers'
import Koa from 'koa'
import { deadline } from '@timebudget/koa'
import { announce } from './announce.ts'
import type { Passage } from './corpus.ts'
import { numeric, required } from './settings.ts'
import { budgeted, upstream } from './upstream.ts'

// The chain itself: find passages, put the best first, let the model answer from them.
const retrieve = upstream({ name: 'retrieve', url: required('RETRIEVE_URL'), timeout: 1000, floor: 50 })
const rerank = upstream({ name: 'rerank', url: required('RERANK_URL'), timeout: 1000, floor: 50 })
const generate = upstream({
  name: 'generate',
  url: `${required('OPENAI_BASE_URL')}/chat/completions`,
  // Ten minutes is what OpenAI's own client allows: a long answer is not an error.
  timeout: numeric('LLM_TIMEOUT_MS', 600_000),
  floor: 300,
})
const model = process.env['OPENAI_MODEL'] ?? 'stand-in'
const key = process.env['OPENAI_API_KEY'] ?? 'none'

const app = new Koa()
if (budgeted) app.use(deadline())

app.use(async (context) => {
  const { question } = (await json(context.req)) as { question: string }
  const found = (await retrieve({ question })) as Passage[]
  const [best, second] = (await rerank({ question, passages: found })) as Passage[]
  const completion = (await generate(
    {
      model,
      messages: [
        {
          role: 'system',
          content: `Answer briefly, from these passages only.\n${best?.text}\n${second?.text}`,
        },
        { role: 'user', content: question },
      ],
    },
    { authorization: `Bearer ${key}`, 'x-request-id': context.get('x-request-id') },
  )) as { choices: Array<{ message: { content: string } }> }
  context.body = { answer: completion.choices[0]?.message.content, source: best?.title }
})

app.on('error', (error: Error) => console.error(`orchestrator: ${error.message}`))
const server = app.listen(numeric('PORT', 0), '127.0.0.1', () => announce('orchestrator', server))
