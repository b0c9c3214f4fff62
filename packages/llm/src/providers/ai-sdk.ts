import { UpstreamError } from '@timebudget/core'
import { expectMethod } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import { countOf, errorIn, type JsonObject, objectOf, textOf } from '../protocols/json.ts'
import type { Usage } from '../usage.ts'
import { finishOf, isMadeUpFinish } from './ai-sdk-finish.ts'
import { eventsOf, type SourceScope } from './source.ts'

/** What of the AI SDK's language models is needed; those of its versions 6 and 7 are such. */
export interface AiSdkModel<Options> {
  doStream(options: Options): PromiseLike<{ readonly stream: ReadableStream<unknown> }>
}

/** A call's options, in which the prompt may also be a text, and each message's content as well. */
export type AiSdkCall<Options> = Omit<Options, 'prompt' | 'abortSignal'> & {
  readonly prompt: string | readonly { readonly role: string; readonly content: unknown }[]
}

/**
 * An answer of a language model of the AI SDK, piece by piece. It is asked below `streamText`, so that nothing is
 * repeated, and no tool is run.
 *
 *     for await (const event of aiSdk(openai('gpt-5'), { prompt: 'why?' })) if (event.type === 'text') write(event.text)
 */
export function aiSdk<Options extends object>(
  model: AiSdkModel<Options>,
  call: AiSdkCall<Options>,
  scope?: SourceScope,
): AsyncIterableIterator<ModelEvent> {
  expectMethod(model, 'model', 'doStream')
  const answer = new AiSdkAnswer()
  return eventsOf(
    {
      name: 'the answer',
      async open({ signal, headers }) {
        const given = objectOf(objectOf(call)['headers'])
        const options = {
          ...call,
          prompt: promptOf(call.prompt),
          headers: { ...headers, ...given },
          abortSignal: signal,
        }
        return (await model.doStream(options as unknown as Options)).stream
      },
      read: (part) => answer.read(part),
    },
    scope,
  )
}

/** Parts of tool calls are told by their ids, and the whole call comes after them. */
class AiSdkAnswer {
  readonly #tools: string[] = []

  #tool(id: unknown): { readonly type: 'tool'; readonly index: number; readonly id: string } {
    return { type: 'tool', index: this.#indexOf(id), id: String(id) }
  }

  #indexOf(id: unknown): number {
    const known = this.#tools.indexOf(String(id))
    return known >= 0 ? known : this.#tools.push(String(id)) - 1
  }

  *read(data: unknown): Generator<ModelEvent> {
    const part = objectOf(data)
    const text = textOf(part['delta']) ?? ''
    switch (part['type']) {
      case 'text-delta':
        if (text !== '') yield { type: 'text', text }
        return
      case 'reasoning-delta':
        if (text !== '') yield { type: 'reasoning', text }
        return
      case 'tool-input-start':
        yield { ...this.#tool(part['id']), name: textOf(part['toolName']), arguments: '' }
        return
      case 'tool-input-delta':
        yield { type: 'tool', index: this.#indexOf(part['id']), arguments: text }
        return
      case 'tool-call': {
        const { toolCallId: id, toolName, input } = part
        if (!this.#tools.includes(String(id)))
          yield { ...this.#tool(id), name: textOf(toolName), arguments: textOf(input) ?? '' }
        return
      }
      case 'finish':
        yield* readFinish(part)
        return
      case 'error':
        throw errorOf(part['error'])
    }
  }
}

function* readFinish(part: JsonObject): Generator<ModelEvent> {
  yield { type: 'usage', usage: readUsage(objectOf(part['usage'])) }
  if (isMadeUpFinish(part)) return
  const { unified, raw } = finishOf(part)
  yield { type: 'finish', reason: unified ?? raw ?? 'stop' }
}

function readUsage({ inputTokens: input, outputTokens: output, ...flat }: JsonObject): Usage {
  return {
    inputTokens: countOf(input) ?? countOf(objectOf(input)['total']),
    outputTokens: countOf(output) ?? countOf(objectOf(output)['total']),
    cachedTokens: countOf(flat['cachedInputTokens']) ?? countOf(objectOf(input)['cacheRead']),
    reasoningTokens: countOf(flat['reasoningTokens']) ?? countOf(objectOf(output)['reasoning']),
    estimated: false,
  }
}

/** Some providers hand on what they were sent, which is no error. */
function errorOf(error: unknown): Error {
  if (error instanceof Error) return error
  const message = textOf(error) ?? textOf(objectOf(error)['message']) ?? errorIn(error)?.message
  return new UpstreamError(`the answer failed: ${message ?? 'the provider gave no message'}`, {
    cause: error,
  })
}

function promptOf(prompt: AiSdkCall<object>['prompt']): unknown {
  const messages = typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt
  return messages.map((message) => {
    const { role, content } = message
    return role === 'system' || typeof content !== 'string'
      ? message
      : { ...message, content: [{ type: 'text', text: content }] }
  })
}
