import { createOpenAI } from '@ai-sdk/openai'
import { aiSdkMiddleware, type AiSdkMiddlewareOptions } from '@timebudget/llm'
import { generateText, streamText, wrapLanguageModel } from 'ai'
import type { wrapLanguageModel as wrapLanguageModel7 } from 'ai7'
import { describe, expect, test } from 'vitest'
import { middlewareChecks } from './providers/middleware-checks.ts'

const sdk = { createOpenAI, generateText, streamText, wrapLanguageModel }

describe('the middleware for AI SDK 6', () => {
  test.each(middlewareChecks)('$name', { retry: 2 }, ({ run }) => run(sdk))
})

test('names options that do not exist or cannot be read', () => {
  const options = { profile: 'chat' } satisfies AiSdkMiddlewareOptions
  expect(() => aiSdkMiddleware({ ...options, profil: 1 } as AiSdkMiddlewareOptions)).toThrow('profil:')
  expect(() => aiSdkMiddleware({ profile: 'talk' })).toThrow("'talk'")
  expect(() => aiSdkMiddleware({} as AiSdkMiddlewareOptions)).toThrow('profile:')
})

test('is one to the types of AI SDK 6 and 7', () => {
  const middleware = aiSdkMiddleware({ profile: 'chat' })
  const for6: Parameters<typeof wrapLanguageModel>[0]['middleware'] = middleware
  const for7: Parameters<typeof wrapLanguageModel7>[0]['middleware'] = middleware
  expect(for6).toBe(for7)
})
