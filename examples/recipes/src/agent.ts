import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { createOpenAI } from '@ai-sdk/openai'
import { currentDeadline } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { answerHeaders, governedFetch, ladder, model, rule, statusOf } from '@timebudget/llm'
import { stepCountIs, ToolLoopAgent } from 'ai'
import { connect, toolsOf } from './mcp-client.ts'

const openai = createOpenAI({ fetch: governedFetch({ profile: 'chat' }) }) // reads OPENAI_API_KEY and OPENAI_BASE_URL
const steps = 8

const agent = new ToolLoopAgent({
  model: openai.chat('gpt-5'),
  tools: await toolsOf(await connect(process.env['MCP_URL'] ?? 'http://localhost:3001')),
  maxRetries: 0,
  stopWhen: stepCountIs(steps),
  // the last step, or the last one that there is time for, answers from what is known by then
  prepareStep: ({ stepNumber }) => {
    const left = currentDeadline()?.remaining() ?? Infinity
    return stepNumber === steps - 1 || left < 3_000 ? { toolChoice: 'none' } : {}
  },
})

const answers = ladder<string>([
  model('agent', async (prompt, { signal }) => {
    const { text: answer } = await agent.stream({ prompt, abortSignal: signal })
    return answer
  }),
  rule(() => 'I could not find that out in time. Please ask again.', { reserve: '200ms' }),
])

export const server: Server = createServer(
  withDeadline(
    async (request, response) => {
      const answer = await answers.run(await text(request))
      response.writeHead(statusOf(answer), answerHeaders(answer)).end(answer.text)
    },
    { default: '20s', max: '2m' },
  ),
)
server.listen(process.env['PORT'] ?? 3000)
