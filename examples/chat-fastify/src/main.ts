import { localProvider, steadyTokens } from '@timebudget/llm/testing'
import { chatApp } from './chat.ts'

const apiKey = process.env['OPENAI_API_KEY']
const provider = apiKey === undefined ? await localProvider({ script: steadyTokens(40, '60ms') }) : undefined
const baseURL = process.env['OPENAI_BASE_URL'] ?? provider?.openaiUrl ?? 'https://api.openai.com/v1'

const app = await chatApp({ baseURL, apiKey: apiKey ?? 'local' })
app.listen({ port: 3000 }, () => {
  console.log(`asks ${baseURL}; try:`)
  console.log(
    `curl -N -H 'content-type: application/json' -d '{"question":"why?"}' http://localhost:3000/chat`,
  )
})
