import { randomUUID } from 'node:crypto'

/** The part of OpenAI's chat completion request that this model understands. */
export interface ChatRequest {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly stream?: boolean | null
  readonly stream_options?: { readonly include_usage?: boolean } | null
  readonly max_tokens?: number | null
  readonly max_completion_tokens?: number | null
}

/** One message of a conversation; content is text or a list of parts. */
export interface ChatMessage {
  readonly role: string
  readonly content?: string | null | ReadonlyArray<{ readonly type: string; readonly text?: string }>
}

/** JSON schema of the request, for a server that validates before it works. */
export const chatRequestSchema = {
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { type: 'string' },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['role'],
        properties: { role: { enum: ['developer', 'system', 'user', 'assistant', 'tool', 'function'] } },
      },
    },
    n: { enum: [1, null] },
    stream: { type: 'boolean', nullable: true },
    stream_options: {
      type: 'object',
      nullable: true,
      properties: { include_usage: { type: 'boolean' } },
    },
    max_tokens: { type: 'integer', minimum: 1, nullable: true },
    max_completion_tokens: { type: 'integer', minimum: 1, nullable: true },
  },
} as const

/** The text that a request asks the model to go on from. */
export function promptOf(request: ChatRequest): string {
  return request.messages.map(textOf).join('\n')
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => part.text ?? '').join('')
}

/** Why the answer ends where it does. */
export type FinishReason = 'stop' | 'length'

/** One answer in the making: writes the bodies and chunks that OpenAI's clients read. */
export class ChatAnswer {
  readonly #identity: { readonly id: string; readonly created: number; readonly model: string }
  readonly #promptTokens: number
  readonly #withUsage: boolean

  constructor(request: ChatRequest) {
    this.#identity = {
      id: `chatcmpl-${randomUUID().replaceAll('-', '')}`,
      created: Math.floor(Date.now() / 1000),
      model: request.model,
    }
    // This model's tokens are words.
    this.#promptTokens = promptOf(request).split(/\s+/).length
    this.#withUsage = request.stream_options?.include_usage === true
  }

  /** The whole answer in one body. */
  completion(tokens: readonly string[], finish: FinishReason): object {
    const message = { role: 'assistant', content: tokens.join(''), refusal: null, annotations: [] }
    return {
      ...this.#head('chat.completion'),
      choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
      usage: this.#usage(tokens.length),
      service_tier: 'default',
      system_fingerprint: null,
    }
  }

  /** The events of a streamed answer: a role, the tokens, why it ends, usage if asked for, `[DONE]`. */
  async *events(tokens: AsyncIterable<string>, finish: FinishReason): AsyncGenerator<string> {
    let count = 0
    yield this.#chunk({ role: 'assistant', content: '', refusal: null }, null)
    for await (const content of tokens) {
      count++
      yield this.#chunk({ content }, null)
    }
    yield this.#chunk({}, finish)
    if (this.#withUsage)
      yield event({ ...this.#head('chat.completion.chunk'), choices: [], usage: this.#usage(count) })
    yield 'data: [DONE]\n\n'
  }

  #chunk(delta: object, finish: FinishReason | null): string {
    return event({
      ...this.#head('chat.completion.chunk'),
      service_tier: 'default',
      system_fingerprint: null,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      // Asked for, usage is there in every chunk, null in all but the last.
      ...(this.#withUsage && { usage: null }),
    })
  }

  #head(object: string): object {
    const { id, created, model } = this.#identity
    return { id, object, created, model }
  }

  #usage(completionTokens: number): object {
    return {
      prompt_tokens: this.#promptTokens,
      completion_tokens: completionTokens,
      total_tokens: this.#promptTokens + completionTokens,
    }
  }
}

/** The error body that OpenAI's clients read. */
export function errorBody(
  message: string,
  options: { readonly type: string; readonly param?: string; readonly code?: string },
): object {
  return { error: { message, type: options.type, param: options.param ?? null, code: options.code ?? null } }
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
