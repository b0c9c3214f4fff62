import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import { type Ask, model, prompt, type Surface } from './surface.ts'

const anthropicClient = ({ fetch, url, maxRetries = 0 }: Ask): Anthropic =>
  new Anthropic({ fetch, baseURL: url, apiKey: 'test', maxRetries })

const message = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: prompt }] }

const anthropic: Surface = {
  name: '@anthropic-ai/sdk',
  numbersRetries: true,
  cancelsOnBreak: true,
  async *stream(ask) {
    const stream = await anthropicClient(ask).messages.create(
      { ...message, stream: true },
      { signal: ask.signal ?? null },
    )
    for await (const event of stream) {
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
    }
  },
  async whole(ask) {
    const answer = await anthropicClient(ask).messages.create(message, { signal: ask.signal ?? null })
    return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
}

const chatModel = ({ fetch, url, maxRetries = 0 }: Ask): ChatOpenAI =>
  new ChatOpenAI({ model, apiKey: 'test', maxRetries, configuration: { baseURL: `${url}/v1`, fetch } })

const textOf = ({ content }: { readonly content: unknown }): string =>
  typeof content === 'string' ? content : ''

const langchain: Surface = {
  name: '@langchain/openai',
  numbersRetries: false,
  cancelsOnBreak: true,
  async *stream(ask) {
    const stream = await chatModel(ask).stream(prompt, ask.signal === undefined ? {} : { signal: ask.signal })
    for await (const chunk of stream) yield textOf(chunk)
  },
  async whole(ask) {
    const answer = await chatModel(ask).invoke(prompt, ask.signal === undefined ? {} : { signal: ask.signal })
    return textOf(answer)
  },
}

/** The surfaces of SDKs of which one major is tested. */
export const otherSurfaces: readonly Surface[] = [anthropic, langchain]
