import { countOf, errorIn, type JsonObject, listOf, objectOf, textOf } from './json.ts'
import { nothing, type Protocol, type Reading, type ReportedUsage } from './protocol.ts'

/** Anthropic's messages. */
export const anthropic: Protocol = {
  name: 'anthropic',
  readEvent(data) {
    const event = objectOf(data)
    switch (event['type']) {
      case 'message_start': {
        // its count of output tokens is a placeholder
        const { outputTokens: _placeholder, ...usage } = readUsage(objectOf(event['message'])['usage']) ?? {}
        return { kind: 'nothing', usage }
      }
      case 'content_block_start':
        return readStart(objectOf(event['content_block']))
      case 'content_block_delta':
        return readDelta(objectOf(event['delta']))
      case 'message_delta':
        return {
          kind: 'nothing',
          finish: textOf(objectOf(event['delta'])['stop_reason']),
          usage: readUsage(event['usage']),
        }
      case 'message_stop':
        return { kind: 'nothing', terminal: true }
    }
    const error = errorIn(event)
    return error === undefined ? nothing : { kind: 'error', error, terminal: true }
  },
  readWhole(body) {
    const error = errorIn(body)
    if (error !== undefined) return { kind: 'error', error, terminal: true }
    const { content, stop_reason: finish, usage } = objectOf(body)
    const blocks = listOf(content)
    const text = blocks.map(wholeText).join('')
    return {
      kind: blocks.length > 0 ? 'content' : 'nothing',
      text,
      finish: textOf(finish),
      usage: readUsage(usage),
      terminal: true,
    }
  },
}

/** Blocks of text and thinking start empty; tools, their results and hidden thinking come with something. */
function readStart(block: JsonObject): Reading {
  switch (block['type']) {
    case 'text':
    case 'thinking': {
      const text = textOf(block['text']) ?? textOf(block['thinking'])
      return text === undefined ? nothing : { kind: block['type'] === 'text' ? 'content' : 'reasoning', text }
    }
    case 'redacted_thinking':
      return { kind: 'reasoning' }
    default:
      return { kind: 'tool' }
  }
}

function readDelta(delta: JsonObject): Reading {
  const said = textOf(delta['text']) ?? textOf(delta['thinking']) ?? textOf(delta['partial_json'])
  switch (delta['type']) {
    case 'text_delta':
      return said === undefined ? nothing : { kind: 'content', text: said }
    case 'thinking_delta':
      return said === undefined ? nothing : { kind: 'reasoning', text: said }
    case 'input_json_delta':
      return said === undefined ? nothing : { kind: 'tool', text: said }
    case 'signature_delta':
      return { kind: 'reasoning' }
    case 'citations_delta':
      return { kind: 'content' }
    default:
      return nothing
  }
}

function wholeText(block: JsonObject): string {
  const text = textOf(block['text']) ?? textOf(block['thinking'])
  if (text !== undefined) return text
  return block['input'] === undefined ? '' : JSON.stringify(block['input'])
}

/** The counts as this API gives them, the input's with those read from and written to the cache. */
export function readUsage(usage: unknown): ReportedUsage | undefined {
  if (usage === undefined || usage === null) return undefined
  const counts = objectOf(usage)
  const fresh = countOf(counts['input_tokens'])
  const cached = countOf(counts['cache_read_input_tokens'])
  const written = countOf(counts['cache_creation_input_tokens'])
  return {
    ...(fresh === undefined ? {} : { inputTokens: fresh + (cached ?? 0) + (written ?? 0) }),
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    outputTokens: countOf(counts['output_tokens']),
  }
}
