import type { LlmCall } from '@timebudget/llm'

/** A call to a model that went well, but for what is given. */
export function callOf(call: Partial<LlmCall>): LlmCall {
  return {
    operation: 'generate',
    provider: 'openai',
    model: 'big',
    url: 'http://127.0.0.1/v1/chat/completions',
    task: undefined,
    feature: 'chat',
    tenant: 'acme',
    attempt: 1,
    outcome: 'ok',
    error: undefined,
    complete: true,
    status: 200,
    retryAfter: undefined,
    usage: { inputTokens: 1_000_000, outputTokens: 100_000, estimated: false },
    contentChunks: 3,
    textLength: 12,
    timings: { connect: 1, headers: 5, firstToken: 9, total: 20 },
    sdkRetry: false,
    ...call,
  }
}
