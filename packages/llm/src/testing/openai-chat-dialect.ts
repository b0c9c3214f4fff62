import { type Asked, type Dialect, event, textOf, type Token, toolNameOf } from './dialect.ts'
import type { ProviderFailure, TokenCounts } from './script.ts'

/** Chat completions, as OpenAI and those who are compatible with it write them. */
export function openaiChatDialect({ model, includesUsage }: Asked): Dialect {
  const answer = {
    id: 'chatcmpl-local',
    created: 1_760_000_000,
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_local',
  }
  let calledTool = false
  const chunk = (delta: object, finishReason: string | null = null): string =>
    event({
      ...answer,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...(includesUsage ? { usage: null } : {}),
    })
  return {
    open: () => chunk({ role: 'assistant', content: '', refusal: null }),
    token(token) {
      switch (token.kind) {
        case 'text':
          return chunk({ content: token.text })
        case 'reasoning':
          return chunk({ reasoning_content: token.text })
        case 'tool': {
          calledTool = true
          return chunk({ tool_calls: [toolDelta(token)] })
        }
      }
    },
    empty: () => chunk({ content: '' }),
    keepAlive: () => ': keep-alive\n\n',
    failure: (failure) => event({ error: errorOf(failure, 'server_error') }),
    close(counts) {
      const usage = includesUsage
        ? event({ ...answer, object: 'chat.completion.chunk', choices: [], usage: usageOf(counts) })
        : ''
      return `${chunk({}, calledTool ? 'tool_calls' : 'stop')}${usage}${event('[DONE]')}`
    },
    whole: (tokens, counts) => ({
      ...answer,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: messageOf(tokens),
          logprobs: null,
          finish_reason: toolNameOf(tokens) === undefined ? 'stop' : 'tool_calls',
        },
      ],
      usage: usageOf(counts),
    }),
    errorBody: openaiErrorBody,
  }
}

/** The body of OpenAI's error answers, the same for all of its APIs. */
export function openaiErrorBody(status: number, failure: ProviderFailure): object {
  return { error: errorOf(failure, status < 500 ? 'invalid_request_error' : 'server_error') }
}

function errorOf({ message, type, code }: ProviderFailure, otherwise: string): object {
  return { message, type: type ?? otherwise, param: null, code: code ?? null }
}

function toolDelta({ name, text }: Token): object {
  if (name === undefined) return { index: 0, function: { arguments: text } }
  return { index: 0, id: 'call_local', type: 'function', function: { name, arguments: text } }
}

function messageOf(tokens: readonly Token[]): object {
  const reasoning = textOf(tokens, 'reasoning')
  const name = toolNameOf(tokens)
  const call = { id: 'call_local', type: 'function', function: { name, arguments: textOf(tokens, 'tool') } }
  return {
    role: 'assistant',
    content: textOf(tokens, 'text') || null,
    refusal: null,
    annotations: [],
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(name === undefined ? {} : { tool_calls: [call] }),
  }
}

function usageOf({ input, output, cached, reasoning }: TokenCounts): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}
