import { UpstreamError } from '@timebudget/core'
import { expectMethod } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import { countOf, errorIn, objectOf, textOf } from '../protocols/json.ts'
import { readUsage } from '../protocols/openai-responses.ts'
import { eventsOf, type RequestOptions, type SourceScope } from './source.ts'

/** What of OpenAI's client is needed. */
export interface OpenAiResponsesClient<Params> {
  readonly responses: {
    create(
      params: Params & { readonly stream: true },
      options: RequestOptions,
    ): PromiseLike<AsyncIterable<unknown>>
  }
}

/** A response of OpenAI's Responses API, piece by piece. */
export function openaiResponses<Params extends object>(
  client: OpenAiResponsesClient<Params>,
  params: Omit<Params, 'stream'>,
  scope?: SourceScope,
): AsyncIterableIterator<ModelEvent> {
  expectMethod(client, 'client', 'responses.create')
  const asked = { ...params, stream: true } as unknown as Params & { readonly stream: true }
  return eventsOf(
    {
      name: 'the response',
      open: (options) => client.responses.create(asked, options),
      read: readEvent,
    },
    scope,
  )
}

function* readEvent(data: unknown): Generator<ModelEvent> {
  const event = objectOf(data)
  const index = countOf(event['output_index']) ?? 0
  const delta = textOf(event['delta'])
  switch (event['type']) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      if (delta !== undefined) yield { type: 'text', text: delta }
      return
    case 'response.reasoning_text.delta':
    case 'response.reasoning_summary_text.delta':
      if (delta !== undefined) yield { type: 'reasoning', text: delta }
      return
    case 'response.output_item.added': {
      const { type, call_id: id, name } = objectOf(event['item'])
      if (type === 'function_call' || type === 'custom_tool_call')
        yield { type: 'tool', index, id: textOf(id), name: textOf(name), arguments: '' }
      return
    }
    case 'response.function_call_arguments.delta':
    case 'response.custom_tool_call_input.delta':
      if (delta !== undefined) yield { type: 'tool', index, arguments: delta }
      return
    case 'response.completed':
    case 'response.incomplete':
      yield* readEnd(event['response'])
      return
    case 'response.failed':
    case 'response.cancelled':
    case 'error':
      throw new UpstreamError(`the response failed: ${messageOf(event)}`)
  }
}

function* readEnd(response: unknown): Generator<ModelEvent> {
  const { status, usage, incomplete_details: incomplete } = objectOf(response)
  const reported = readUsage(usage)
  if (reported !== undefined) yield { type: 'usage', usage: { ...reported, estimated: false } }
  yield { type: 'finish', reason: textOf(objectOf(incomplete)['reason']) ?? textOf(status) ?? 'completed' }
}

function messageOf(event: Readonly<Record<string, unknown>>): string {
  const error = errorIn(event) ?? errorIn(event['response'])
  return error?.message ?? textOf(event['message']) ?? String(event['type'])
}
