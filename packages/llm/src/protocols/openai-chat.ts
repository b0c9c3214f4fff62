import { countOf, errorIn, type JsonObject, listOf, objectOf, textOf } from './json.ts'
import { nothing, type Protocol, type Reading, type ReportedUsage } from './protocol.ts'

/** Chat completions, of OpenAI and of those who are compatible with it. */
export const openaiChat: Protocol = {
  name: 'openai-chat',
  readEvent: (data) => readChoices(data, 'delta'),
  readWhole: (body) => ({ ...readChoices(body, 'message'), terminal: true }),
}

function readChoices(data: unknown, part: 'delta' | 'message'): Reading {
  const error = errorIn(data)
  if (error !== undefined) return { kind: 'error', error, terminal: true }
  const { choices, usage } = objectOf(data)
  let said: Reading = nothing
  let finish: string | undefined
  for (const choice of listOf(choices)) {
    const reading = readDelta(objectOf(choice[part]), choice)
    if (reading.kind !== 'nothing')
      said = { kind: reading.kind, text: `${said.text ?? ''}${reading.text ?? ''}` }
    finish ??= textOf(choice['finish_reason'])
  }
  return { ...said, finish, usage: readUsage(usage) }
}

function readDelta(delta: JsonObject, choice: JsonObject): Reading {
  // `text` is that of the older completions; Mistral's content is a list of parts
  const content =
    textOf(delta['content']) ??
    textOf(listOf(delta['content']).map(partText).join('')) ??
    textOf(delta['refusal']) ??
    textOf(choice['text'])
  const reasoning = textOf(delta['reasoning_content']) ?? textOf(delta['reasoning'])
  const tool = readToolCalls(delta)
  if (content !== undefined) return { kind: 'content', text: `${reasoning ?? ''}${content}${tool ?? ''}` }
  if (reasoning !== undefined) return { kind: 'reasoning', text: `${reasoning}${tool ?? ''}` }
  if (tool !== undefined) return { kind: 'tool', text: tool }
  if (Object.keys(objectOf(delta['audio'])).length > 0) return { kind: 'content' }
  return listOf(delta['reasoning_details']).length > 0 ? { kind: 'reasoning' } : nothing
}

/** A name opens a call, and is a step forward by itself. */
function readToolCalls(delta: JsonObject): string | undefined {
  const calls = [...listOf(delta['tool_calls']).map((call) => objectOf(call['function']))]
  const older = objectOf(delta['function_call'])
  if (Object.keys(older).length > 0) calls.push(older)
  const parts = calls.map((call) => `${textOf(call['name']) ?? ''}${textOf(call['arguments']) ?? ''}`)
  return textOf(parts.join(''))
}

function partText(part: JsonObject): string {
  return textOf(part['text']) ?? listOf(part['thinking']).map(partText).join('')
}

/** The counts as this API gives them; absent where it gives none. */
export function readUsage(usage: unknown): ReportedUsage | undefined {
  if (usage === undefined || usage === null) return undefined
  const counts = objectOf(usage)
  return {
    inputTokens: countOf(counts['prompt_tokens']),
    outputTokens: countOf(counts['completion_tokens']),
    cachedTokens: countOf(objectOf(counts['prompt_tokens_details'])['cached_tokens']),
    reasoningTokens: countOf(objectOf(counts['completion_tokens_details'])['reasoning_tokens']),
  }
}
