import { type Asked, type Dialect, event, textOf, type Token, toolNameOf } from './dialect.ts'
import type { ProviderFailure, TokenCounts } from './script.ts'

/** Anthropic's messages. */
export function anthropicDialect({ model }: Asked): Dialect {
  let blocks = 0
  let open: Token['kind'] | undefined
  let pinged = false
  let calledTool = false

  const send = (type: string, fields: object = {}): string => event({ type, ...fields }, type)
  const start = (token: Token): string => {
    open = token.kind
    const started = send('content_block_start', { index: blocks, content_block: emptyBlock(token) })
    if (pinged) return started
    pinged = true
    return started + send('ping')
  }
  const stop = (): string => {
    if (open === undefined) return ''
    open = undefined
    blocks += 1
    return send('content_block_stop', { index: blocks - 1 })
  }
  return {
    open: (counts) =>
      send('message_start', {
        // the count of output tokens is a placeholder here
        message: messageOf(model, { content: [], reason: null, counts: { ...counts, output: 1 } }),
      }),
    token(token) {
      if (token.kind === 'tool') calledTool = true
      const before = open === token.kind && token.name === undefined ? '' : stop() + start(token)
      return before + send('content_block_delta', { index: blocks, delta: deltaOf(token) })
    },
    empty() {
      const token: Token = { kind: 'text', text: '' }
      const before = open === 'text' ? '' : stop() + start(token)
      return before + send('content_block_delta', { index: blocks, delta: deltaOf(token) })
    },
    keepAlive: () => send('ping'),
    failure: (failure) => send('error', { error: errorOf(failure, 'api_error') }),
    close(counts) {
      const reason = calledTool ? 'tool_use' : 'end_turn'
      const usage = { output_tokens: counts.output }
      return (
        stop() +
        send('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage }) +
        send('message_stop')
      )
    },
    whole(tokens, counts) {
      const content = (['reasoning', 'text', 'tool'] as const)
        .filter((kind) => tokens.some((token) => token.kind === kind))
        .map((kind) => blockOf(kind, tokens))
      const reason = toolNameOf(tokens) === undefined ? 'end_turn' : 'tool_use'
      return messageOf(model, { content, reason, counts })
    },
    errorBody: (status, failure) => ({
      type: 'error',
      error: errorOf(failure, errorTypes[status] ?? 'api_error'),
      request_id: 'req_local',
    }),
  }
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function errorOf({ type, message }: ProviderFailure, otherwise: string): object {
  return { details: null, type: type ?? otherwise, message }
}

function emptyBlock({ kind, name }: Token): object {
  if (kind === 'tool') return { type: 'tool_use', id: 'toolu_local', name, input: {} }
  return kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' }
}

function deltaOf({ kind, text }: Token): object {
  if (kind === 'tool') return { type: 'input_json_delta', partial_json: text }
  return kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text }
}

function blockOf(kind: Token['kind'], tokens: readonly Token[]): object {
  const text = textOf(tokens, kind)
  if (kind === 'text') return { type: 'text', text, citations: null }
  if (kind === 'reasoning') return { type: 'thinking', thinking: text, signature: 'local' }
  const input: unknown = JSON.parse(text)
  return { type: 'tool_use', id: 'toolu_local', name: toolNameOf(tokens), input }
}

function messageOf(
  model: string,
  {
    content,
    reason,
    counts,
  }: {
    readonly content: readonly object[]
    readonly reason: string | null
    readonly counts: TokenCounts
  },
): object {
  return {
    id: 'msg_local',
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: reason,
    stop_sequence: null,
    usage: {
      input_tokens: counts.input - counts.cached,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: counts.cached,
      output_tokens: counts.output,
      service_tier: 'standard',
    },
  }
}
