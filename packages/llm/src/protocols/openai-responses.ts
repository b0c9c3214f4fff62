import { countOf, errorIn, listOf, objectOf, textOf } from './json.ts'
import { nothing, type Protocol, type ProviderError, type Reading, type ReportedUsage } from './protocol.ts'

/** OpenAI's responses. */
export const openaiResponses: Protocol = {
  name: 'openai-responses',
  readEvent(data) {
    const { type, delta, item, response, ...rest } = objectOf(data)
    const name = textOf(type) ?? ''
    switch (name) {
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return readEnd(response)
      case 'error':
        return { kind: 'error', error: errorIn(data) ?? errorIn({ error: rest }), terminal: true }
      case 'response.output_item.added':
        return readItem(objectOf(item)['type'])
    }
    if (name.endsWith('.delta')) return readDelta(name, delta)
    // a search or a code interpreter says how far it is, and may take its time
    if (/^response\.\w+_call\./.test(name) && !name.endsWith('.done')) return { kind: 'tool' }
    const error = errorIn(data)
    return error === undefined ? nothing : { kind: 'error', error, terminal: true }
  },
  readWhole(body) {
    const error = errorIn(body)
    if (error !== undefined) return { kind: 'error', error, terminal: true }
    const output = listOf(objectOf(body)['output'])
    const text = output
      .flatMap((item) => [
        ...listOf(item['content']),
        ...listOf(item['summary']),
        { text: item['arguments'] },
      ])
      .map((part) => textOf(part['text']) ?? '')
      .join('')
    return { ...readEnd(body), kind: output.length > 0 ? 'content' : 'nothing', text }
  },
}

function readDelta(name: string, delta: unknown): Reading {
  const text = textOf(delta)
  if (text === undefined) return nothing
  if (name.includes('reasoning')) return { kind: 'reasoning', text }
  return { kind: name.includes('_call') ? 'tool' : 'content', text }
}

function readItem(type: unknown): Reading {
  return textOf(type)?.endsWith('_call') === true ? { kind: 'tool' } : nothing
}

function readEnd(response: unknown): Reading {
  const { status, usage, incomplete_details: incomplete } = objectOf(response)
  const reported = readUsage(usage)
  if (status === 'failed' || status === 'cancelled') {
    const error: ProviderError = errorIn(response) ?? { message: `the response was ${status}`, code: status }
    return { kind: 'error', error, usage: reported, terminal: true }
  }
  const finish = textOf(objectOf(incomplete)['reason']) ?? textOf(status)
  return { kind: 'nothing', finish, usage: reported, terminal: true }
}

/** The counts as this API gives them; absent where it gives none. */
export function readUsage(usage: unknown): ReportedUsage | undefined {
  if (usage === undefined || usage === null) return undefined
  const counts = objectOf(usage)
  return {
    inputTokens: countOf(counts['input_tokens']),
    outputTokens: countOf(counts['output_tokens']),
    cachedTokens: countOf(objectOf(counts['input_tokens_details'])['cached_tokens']),
    reasoningTokens: countOf(objectOf(counts['output_tokens_details'])['reasoning_tokens']),
  }
}
