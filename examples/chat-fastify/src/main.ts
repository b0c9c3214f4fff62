import { localProvider, type Script } from '@timebudget/llm/testing'
import { chatApp } from './chat.ts'

const text =
  'This is a provider on your own machine: it says the same to everybody. Stop it half way, cut the network, or close the tab.'
const script: Script = { steps: [{ wait: '2s' }, { text, every: '150ms' }] }
const apiKey = process.env['OPENAI_API_KEY']
const provider = apiKey === undefined ? await localProvider({ script }) : undefined
const baseURL = process.env['OPENAI_BASE_URL'] ?? provider?.openaiUrl ?? 'https://api.openai.com/v1'

const app = await chatApp({ baseURL, apiKey: apiKey ?? 'local' })
app.listen({ port: 3000 }, () => {
  console.log(`asks ${baseURL}; open http://localhost:3000, or try:`)
  console.log(
    `curl -N -H 'content-type: application/json' -d '{"question":"why?"}' http://localhost:3000/chat`,
  )
})
