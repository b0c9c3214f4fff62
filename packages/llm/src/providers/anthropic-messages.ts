import { expectMethod } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import { countOf, objectOf, textOf } from '../protocols/json.ts'
import { readUsage } from '../protocols/anthropic.ts'
import type { Usage } from '../usage.ts'
import { eventsOf, type RequestOptions, type SourceScope } from './source.ts'

/** What of Anthropic's client is needed. */
export interface AnthropicClient<Params> {
  readonly messages: {
    create(
      params: Params & { readonly stream: true },
      options: RequestOptions,
    ): PromiseLike<AsyncIterable<unknown>>
  }
}

/** A message of Anthropic's, piece by piece. */
export function anthropicMessages<Params extends object>(
  client: AnthropicClient<Params>,
  params: Omit<Params, 'stream'>,
  scope?: SourceScope,
): AsyncIterableIterator<ModelEvent> {
  expectMethod(client, 'client', 'messages.create')
  const asked = { ...params, stream: true } as unknown as Params & { readonly stream: true }
  const message = new Message()
  return eventsOf(
    {
      name: 'the message',
      open: (options) => client.messages.create(asked, options),
      read: (event) => message.read(event),
    },
    scope,
  )
}

/** What comes in parts: the input's tokens at the beginning, the output's and the reason at the end. */
class Message {
  #input: Pick<Usage, 'inputTokens' | 'cachedTokens'> = {}
  #finish: string | undefined;

  *read(data: unknown): Generator<ModelEvent> {
    const event = objectOf(data)
    const index = countOf(event['index']) ?? 0
    switch (event['type']) {
      case 'message_start': {
        // its count of output tokens is a placeholder
        const { inputTokens, cachedTokens } = readUsage(objectOf(event['message'])['usage']) ?? {}
        this.#input = { inputTokens, cachedTokens }
        return
      }
      case 'content_block_start': {
        const { type, id, name } = objectOf(event['content_block'])
        if (type === 'tool_use' || type === 'server_tool_use')
          yield { type: 'tool', index, id: textOf(id), name: textOf(name), arguments: '' }
        return
      }
      case 'content_block_delta':
        yield* readDelta(objectOf(event['delta']), index)
        return
      case 'message_delta': {
        this.#finish = textOf(objectOf(event['delta'])['stop_reason']) ?? this.#finish
        const outputTokens = countOf(objectOf(event['usage'])['output_tokens'])
        yield { type: 'usage', usage: { ...this.#input, outputTokens, estimated: false } }
        return
      }
      case 'message_stop':
        yield { type: 'finish', reason: this.#finish ?? 'end_turn' }
    }
  }
}

function* readDelta(delta: Readonly<Record<string, unknown>>, index: number): Generator<ModelEvent> {
  const text = textOf(delta['text'])
  const reasoning = textOf(delta['thinking'])
  const pieces = textOf(delta['partial_json'])
  if (text !== undefined) yield { type: 'text', text }
  if (reasoning !== undefined) yield { type: 'reasoning', text: reasoning }
  if (pieces !== undefined) yield { type: 'tool', index, arguments: pieces }
}
