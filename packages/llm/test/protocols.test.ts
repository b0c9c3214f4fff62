import { describe, expect, test } from 'vitest'
import { anthropic } from '../src/protocols/anthropic.ts'
import { openaiChat } from '../src/protocols/openai-chat.ts'
import { openaiResponses } from '../src/protocols/openai-responses.ts'
import { protocolAt, protocolOf } from '../src/protocols/which.ts'

const delta = (delta: object, more: object = {}): object => ({ choices: [{ index: 0, delta, ...more }] })

describe('what is a token', () => {
  test.each([
    [openaiChat, 'a role', delta({ role: 'assistant', content: '' })],
    [openaiChat, 'an empty delta', delta({ content: '' })],
    [openaiChat, 'a delta of nothing', delta({ content: null, refusal: null, reasoning_content: '' })],
    [openaiChat, 'usage', { choices: [], usage: { prompt_tokens: 1 } }],
    [openaiChat, 'an empty tool call', delta({ tool_calls: [{ index: 0, function: { arguments: '' } }] })],
    [openaiChat, 'something else', 'hello'],
    [openaiResponses, 'the beginning', { type: 'response.created', response: {} }],
    [openaiResponses, 'an empty delta', { type: 'response.output_text.delta', delta: '' }],
    [openaiResponses, 'a keep-alive', { type: 'keepalive' }],
    [
      openaiResponses,
      'a message that begins',
      { type: 'response.output_item.added', item: { type: 'message' } },
    ],
    [anthropic, 'a ping', { type: 'ping' }],
    [anthropic, 'the beginning', { type: 'message_start', message: { usage: { input_tokens: 3 } } }],
    [
      anthropic,
      'a block that begins',
      { type: 'content_block_start', content_block: { type: 'text', text: '' } },
    ],
    [anthropic, 'an empty delta', { type: 'content_block_delta', delta: { type: 'text_delta', text: '' } }],
  ] as const)('$name: %2$s is none', (protocol, _what, event) => {
    expect(protocol.readEvent(event)).toMatchObject({ kind: 'nothing' })
  })

  test.each([
    [openaiChat, 'content', delta({ content: 'hi' })],
    [openaiChat, 'content', delta({ refusal: 'no' })],
    [openaiChat, 'content', delta({ content: [{ type: 'text', text: 'hi' }] })],
    [openaiChat, 'content', { choices: [{ text: 'hi' }] }],
    [openaiChat, 'content', delta({ audio: { data: 'aaaa' } })],
    [openaiChat, 'reasoning', delta({ reasoning_content: 'hm' })],
    [openaiChat, 'reasoning', delta({ reasoning: 'hm' })],
    [openaiChat, 'tool', delta({ tool_calls: [{ function: { name: 'look', arguments: '' } }] })],
    [openaiChat, 'tool', delta({ tool_calls: [{ function: { arguments: '{' } }] })],
    [openaiChat, 'tool', delta({ function_call: { arguments: '{' } })],
    [openaiResponses, 'content', { type: 'response.output_text.delta', delta: 'hi' }],
    [openaiResponses, 'content', { type: 'response.refusal.delta', delta: 'no' }],
    [openaiResponses, 'reasoning', { type: 'response.reasoning_summary_text.delta', delta: 'hm' }],
    [openaiResponses, 'tool', { type: 'response.function_call_arguments.delta', delta: '{' }],
    [openaiResponses, 'tool', { type: 'response.output_item.added', item: { type: 'function_call' } }],
    [openaiResponses, 'tool', { type: 'response.web_search_call.searching' }],
    [anthropic, 'content', { type: 'content_block_delta', delta: { type: 'text_delta', text: 'hi' } }],
    [
      anthropic,
      'reasoning',
      { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'hm' } },
    ],
    [
      anthropic,
      'reasoning',
      { type: 'content_block_delta', delta: { type: 'signature_delta', signature: 'x' } },
    ],
    [
      anthropic,
      'tool',
      { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{' } },
    ],
    [anthropic, 'tool', { type: 'content_block_start', content_block: { type: 'tool_use', name: 'look' } }],
  ] as const)('$name: %2$s in %3$j', (protocol, kind, event) => {
    expect(protocol.readEvent(event)).toMatchObject({ kind })
  })
})

describe('what was used', () => {
  test('comes in the last chunk of chat completions', () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    }
    expect(openaiChat.readEvent({ choices: [], usage }).usage).toEqual({
      inputTokens: 10,
      outputTokens: 7,
      cachedTokens: 4,
      reasoningTokens: 2,
    })
  })

  test("counts what Anthropic read from its cache and wrote to it, and not the first event's placeholder", () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 5,
      cache_creation_input_tokens: 2,
      output_tokens: 1,
    }
    const start = anthropic.readEvent({ type: 'message_start', message: { usage } })
    expect(start.usage).toEqual({ inputTokens: 17, cachedTokens: 5 })
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } }
    expect(anthropic.readEvent(end)).toMatchObject({ finish: 'end_turn', usage: { outputTokens: 9 } })
  })
})

describe('how an answer ends', () => {
  test.each([
    [openaiResponses, { type: 'response.completed', response: { status: 'completed' } }, 'completed'],
    [
      openaiResponses,
      {
        type: 'response.incomplete',
        response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      },
      'max_output_tokens',
    ],
  ] as const)('$name: %2$j', (protocol, event, finish) => {
    expect(protocol.readEvent(event)).toMatchObject({ terminal: true, finish })
  })

  test.each([
    [openaiChat, { error: { message: 'busy', type: 'server_error', code: null } }, 'server_error'],
    [openaiChat, { error: { message: 'busy', type: 'server_error', code: 'overloaded' } }, 'overloaded'],
    [openaiResponses, { type: 'error', code: 'server_error', message: 'busy' }, 'server_error'],
    [
      openaiResponses,
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'server_error', message: 'busy' } },
      },
      'server_error',
    ],
    [anthropic, { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }, 'overloaded_error'],
  ] as const)('badly, $name: %2$j', (protocol, event, code) => {
    const reading = protocol.readEvent(event)
    expect(reading).toMatchObject({ kind: 'error', terminal: true, error: { code, message: 'busy' } })
  })
})

test('a protocol is known by its address, or by what it says', () => {
  expect(protocolAt('/v1/chat/completions')).toBe(openaiChat)
  expect(protocolAt('/openai/deployments/x/chat/completions')).toBe(openaiChat)
  expect(protocolAt('/v1/responses')).toBe(openaiResponses)
  expect(protocolAt('/v1/messages')).toBe(anthropic)
  expect(protocolAt('/api/generate')).toBeUndefined()
  expect(protocolOf({ choices: [] })).toBe(openaiChat)
  expect(protocolOf({ type: 'response.created' })).toBe(openaiResponses)
  expect(protocolOf({ type: 'message_start' })).toBe(anthropic)
  expect(protocolOf({ type: 'text-delta' })).toBeUndefined()
})
