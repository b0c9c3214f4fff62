import { anthropic } from './anthropic.ts'
import { objectOf, textOf } from './json.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import type { Protocol } from './protocol.ts'

/** The protocol spoken at an address. */
export function protocolAt(path: string): Protocol | undefined {
  if (/\/completions\/?$/.test(path)) return openaiChat
  if (/\/responses\/?$/.test(path)) return openaiResponses
  return /\/messages\/?$/.test(path) ? anthropic : undefined
}

/** The protocol that an event's data, or an SDK's object made of it, looks like. */
export function protocolOf(data: unknown): Protocol | undefined {
  const { choices, type } = objectOf(data)
  if (Array.isArray(choices)) return openaiChat
  const name = textOf(type) ?? ''
  if (name.startsWith('response.')) return openaiResponses
  return /^(message|content_block)_/.test(name) ? anthropic : undefined
}
