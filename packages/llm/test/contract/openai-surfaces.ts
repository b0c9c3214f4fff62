import type OpenAI from 'openai'
import { type Ask, model, prompt, type Surface } from './surface.ts'

/** What openai 6 and 7 have in common. */
type OpenAIClass = typeof OpenAI

/** The surfaces of an openai of either major. */
export function openaiSurfaces(name: string, OpenAIClient: OpenAIClass): Surface[] {
  const clientFor = ({ fetch, url, maxRetries = 0 }: Ask): OpenAI =>
    new OpenAIClient({ fetch, baseURL: `${url}/v1`, apiKey: 'test', maxRetries })
  const messages = [{ role: 'user' as const, content: prompt }]
  return [
    {
      name: `${name}, chat completions`,
      numbersRetries: true,
      cancelsOnBreak: true,
      async *stream(ask) {
        const stream = await clientFor(ask).chat.completions.create(
          { model, messages, stream: true },
          { signal: ask.signal ?? null },
        )
        for await (const chunk of stream) yield chunk.choices[0]?.delta.content ?? ''
      },
      async whole(ask) {
        const answer = await clientFor(ask).chat.completions.create(
          { model, messages },
          { signal: ask.signal ?? null },
        )
        return answer.choices[0]?.message.content ?? ''
      },
    },
    {
      name: `${name}, responses`,
      numbersRetries: true,
      cancelsOnBreak: true,
      async *stream(ask) {
        const stream = await clientFor(ask).responses.create(
          { model, input: prompt, stream: true },
          { signal: ask.signal ?? null },
        )
        for await (const event of stream) {
          if (event.type === 'response.output_text.delta') yield event.delta
        }
      },
      async whole(ask) {
        const answer = await clientFor(ask).responses.create(
          { model, input: prompt },
          { signal: ask.signal ?? null },
        )
        return answer.output_text
      },
    },
  ]
}
