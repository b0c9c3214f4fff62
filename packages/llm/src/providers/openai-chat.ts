import { expectMethod } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import { countOf, listOf, objectOf, textOf } from '../protocols/json.ts'
import { readUsage } from '../protocols/openai-chat.ts'
import { eventsOf, type RequestOptions, type SourceScope } from './source.ts'

/** What of OpenAI's client is needed; any compatible one has it. */
export interface OpenAiChatClient<Params> {
  readonly chat: {
    readonly completions: {
      create(
        params: Params & { readonly stream: true },
        options: RequestOptions,
      ): PromiseLike<AsyncIterable<unknown>>
    }
  }
}

/**
 * A chat completion, piece by piece.
 *
 *     for await (const event of openaiChat(openai, { model: 'gpt-5', messages })) if (event.type === 'text') write(event.text)
 */
export function openaiChat<Params extends object>(
  client: OpenAiChatClient<Params>,
  params: Omit<Params, 'stream'>,
  scope?: SourceScope,
): AsyncIterableIterator<ModelEvent> {
  expectMethod(client, 'client', 'chat.completions.create')
  const { stream_options: given } = objectOf(params)
  // without it the usage never comes; null is for endpoints that refuse it
  const options = given === null ? undefined : { include_usage: true, ...objectOf(given) }
  const asked = { ...params, stream_options: options, stream: true } as unknown as Params & {
    readonly stream: true
  }
  return eventsOf(
    {
      name: 'the chat completion',
      open: (options) => client.chat.completions.create(asked, options),
      read: readChunk,
    },
    scope,
  )
}

function* readChunk(chunk: unknown): Generator<ModelEvent> {
  const { choices, usage } = objectOf(chunk)
  const choice = listOf(choices).find(({ index }) => (index ?? 0) === 0)
  if (choice !== undefined) {
    const delta = objectOf(choice['delta'])
    const reasoning = textOf(delta['reasoning_content']) ?? textOf(delta['reasoning'])
    if (reasoning !== undefined) yield { type: 'reasoning', text: reasoning }
    const text = textOf(delta['content']) ?? textOf(delta['refusal'])
    if (text !== undefined) yield { type: 'text', text }
    for (const call of listOf(delta['tool_calls'])) {
      const { name, arguments: pieces } = objectOf(call['function'])
      yield {
        type: 'tool',
        index: countOf(call['index']) ?? 0,
        id: textOf(call['id']),
        name: textOf(name),
        arguments: textOf(pieces) ?? '',
      }
    }
    const finish = textOf(choice['finish_reason'])
    if (finish !== undefined) yield { type: 'finish', reason: finish }
  }
  const reported = readUsage(usage)
  if (reported !== undefined) yield { type: 'usage', usage: { ...reported, estimated: false } }
}
