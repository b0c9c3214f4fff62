import type { Span } from '@opentelemetry/api'
import { attributeOf } from './attributes.ts'

/** Names of the semantic conventions for generative AI on spans; copied, since all of them are in development. */
export const genAiAttributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  model: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  /** Seconds. */
  firstChunk: 'gen_ai.response.time_to_first_chunk',
} as const

/** Before it was called `gen_ai.provider.name`. */
const formerProvider = 'gen_ai.system'

/** Whether an SDK or an instrumentation has made this span of a call to a model. */
export function isGenAi(span: Span): boolean {
  const telling = [genAiAttributes.operation, genAiAttributes.provider, formerProvider]
  return telling.some((name) => attributeOf(span, name) !== undefined)
}
