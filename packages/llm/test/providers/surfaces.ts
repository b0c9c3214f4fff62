import type { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import type OpenAI from 'openai'
import { aiSdk, anthropicMessages, langchainChat, openaiChat, openaiResponses } from '@timebudget/llm'
import { modelName as model, type Place, prompt, type ProviderSurface } from './surface.ts'

const messages = [{ role: 'user' as const, content: prompt }]

/** Those over an openai of either major. */
export function openaiSurfaces(name: string, OpenAIClient: typeof OpenAI): ProviderSurface[] {
  const client = ({ fetch, url, timeout }: Place): OpenAI =>
    new OpenAIClient({
      fetch,
      baseURL: `${url}/v1`,
      apiKey: 'test',
      ...(timeout === undefined ? {} : { timeout }),
    })
  const told = { tellsReasoning: true, countsReasoning: true, hasTimeout: true, hearsErrors: true }
  return [
    {
      name: `openaiChat over ${name}`,
      ...told,
      takesMuch: true,
      ask: (place, scope) => openaiChat(client(place), { model, messages }, scope),
    },
    {
      name: `openaiResponses over ${name}`,
      ...told,
      takesMuch: false,
      ask: (place, scope) => openaiResponses(client(place), { model, input: prompt }, scope),
    },
  ]
}

/** The one over an AI SDK's provider of either major. */
export function aiSdkSurface(name: string, create: typeof createOpenAI): ProviderSurface {
  return {
    name: `aiSdk over ${name}`,
    tellsReasoning: false,
    countsReasoning: true,
    hasTimeout: false,
    takesMuch: true,
    hearsErrors: true,
    ask: ({ fetch, url }, scope) =>
      aiSdk(create({ baseURL: `${url}/v1`, apiKey: 'test', fetch }).chat(model), { prompt }, scope),
  }
}

const anthropic: ProviderSurface = {
  name: 'anthropicMessages',
  tellsReasoning: true,
  countsReasoning: false,
  hasTimeout: true,
  takesMuch: true,
  hearsErrors: true,
  ask({ fetch, url, timeout }, scope) {
    const client = new Anthropic({
      fetch,
      baseURL: url,
      apiKey: 'test',
      ...(timeout === undefined ? {} : { timeout }),
    })
    return anthropicMessages(client, { model, max_tokens: 100, messages }, scope)
  },
}

const chatModel = ({ fetch, url }: Place, useResponsesApi: boolean): ChatOpenAI =>
  new ChatOpenAI({
    model,
    apiKey: 'test',
    useResponsesApi,
    configuration: { baseURL: `${url}/v1`, fetch },
  })

const langchain: ProviderSurface = {
  name: 'langchainChat',
  tellsReasoning: true,
  countsReasoning: true,
  hasTimeout: false,
  takesMuch: true,
  hearsErrors: true,
  ask: (place, scope) => langchainChat(chatModel(place, false), prompt, scope),
}

const langchainResponses: ProviderSurface = {
  ...langchain,
  name: 'langchainChat over the Responses API',
  tellsReasoning: false,
  takesMuch: false,
  hearsErrors: false,
  ask: (place, scope) => langchainChat(chatModel(place, true), prompt, scope),
}

/** Those over SDKs of which one major is tested. */
export const otherSurfaces: readonly ProviderSurface[] = [anthropic, langchain, langchainResponses]
