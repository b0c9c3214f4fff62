import type { createOpenAI } from '@ai-sdk/openai'
import type { generateText, streamText } from 'ai'
import { type Ask, model, prompt, type Surface } from './surface.ts'

/** What AI SDK 6 and 7 have in common. */
export interface AiSdk {
  readonly createOpenAI: typeof createOpenAI
  readonly generateText: typeof generateText
  readonly streamText: typeof streamText
}

/** The surfaces of an AI SDK of either major. */
export function aiSdkSurfaces(name: string, sdk: AiSdk): Surface[] {
  const settingsFor = (ask: Ask): Parameters<typeof generateText>[0] => ({
    model: sdk.createOpenAI({ baseURL: `${ask.url}/v1`, apiKey: 'test', fetch: ask.fetch }).chat(model),
    prompt,
    maxRetries: ask.maxRetries ?? 0,
    ...(ask.signal === undefined ? {} : { abortSignal: ask.signal }),
  })
  return [
    {
      name,
      numbersRetries: false,
      cancelsOnBreak: false,
      async *stream(ask) {
        const { fullStream } = sdk.streamText({ ...settingsFor(ask), onError: () => undefined })
        for await (const part of fullStream) {
          if (part.type === 'text-delta') yield part.text
          if (part.type === 'error') throw part.error
        }
      },
      async whole(ask) {
        return (await sdk.generateText(settingsFor(ask))).text
      },
    },
  ]
}
