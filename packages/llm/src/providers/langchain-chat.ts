import { expectMethod } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import { countOf, type JsonObject, listOf, objectOf, textOf } from '../protocols/json.ts'
import type { Usage } from '../usage.ts'
import { eventsOf, type SourceScope } from './source.ts'

/** What of LangChain's chat models is needed. */
export interface LangChainModel<Messages> {
  stream(
    messages: Messages,
    options: {
      readonly signal: AbortSignal
      readonly maxRetries: 0
      readonly headers: Record<string, string>
    },
  ): PromiseLike<AsyncIterable<unknown>>
}

/**
 * An answer of a chat model of LangChain's, piece by piece.
 *
 *     for await (const event of langchainChat(new ChatOpenAI({ model: 'gpt-5' }), messages)) if (event.type === 'text') write(event.text)
 */
export function langchainChat<Messages>(
  model: LangChainModel<Messages>,
  messages: Messages,
  scope?: SourceScope,
): AsyncIterableIterator<ModelEvent> {
  expectMethod(model, 'model', 'stream')
  return eventsOf(
    {
      name: 'the answer',
      // no timeout: LangChain would make a signal of it that garbage collection silences on Node 20
      open: ({ signal, headers, maxRetries }) => model.stream(messages, { signal, headers, maxRetries }),
      read: readChunk,
    },
    scope,
  )
}

function* readChunk(data: unknown): Generator<ModelEvent> {
  const chunk = objectOf(data)
  const more = objectOf(chunk['additional_kwargs'])
  const metadata = objectOf(chunk['response_metadata'])
  const reasoning = textOf(more['reasoning_content'])
  if (reasoning !== undefined) yield { type: 'reasoning', text: reasoning }
  yield* readContent(chunk['content'])
  for (const call of listOf(chunk['tool_call_chunks'])) {
    yield {
      type: 'tool',
      index: countOf(call['index']) ?? 0,
      id: textOf(call['id']),
      name: textOf(call['name']),
      arguments: textOf(call['args']) ?? '',
    }
  }
  const usage = chunk['usage_metadata']
  if (usage !== undefined && usage !== null) yield { type: 'usage', usage: readUsage(objectOf(usage)) }
  const finish = finishOf(metadata) ?? finishOf(more)
  if (finish !== undefined) yield { type: 'finish', reason: finish }
}

/** A text, or blocks of several kinds. */
function* readContent(content: unknown): Generator<ModelEvent> {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)
  for (const block of blocks) {
    const reasoning = textOf(block['reasoning']) ?? textOf(block['thinking'])
    const text = textOf(block['text'])
    if (reasoning !== undefined) yield { type: 'reasoning', text: reasoning }
    if (text !== undefined) yield { type: 'text', text }
  }
}

/** As OpenAI's chat completions, Anthropic's messages and OpenAI's responses call it. */
function finishOf(metadata: JsonObject): string | undefined {
  const { finish_reason: finish, stop_reason: stop, status, incomplete_details: incomplete } = metadata
  if (status === 'completed' || status === 'incomplete')
    return textOf(objectOf(incomplete)['reason']) ?? status
  return textOf(finish) ?? textOf(stop)
}

function readUsage(counts: JsonObject): Usage {
  return {
    inputTokens: countOf(counts['input_tokens']),
    outputTokens: countOf(counts['output_tokens']),
    cachedTokens: countOf(objectOf(counts['input_token_details'])['cache_read']),
    reasoningTokens: countOf(objectOf(counts['output_token_details'])['reasoning']),
    estimated: false,
  }
}
