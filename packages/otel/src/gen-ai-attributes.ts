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

/** What the conventions call the work around calls to models: it holds calls, and is none. */
const workAround: ReadonlySet<unknown> = new Set([
  'create_agent',
  'execute_tool',
  'invoke_agent',
  'invoke_workflow',
  'plan',
])

/** Whether an SDK or an instrumentation has made this span of a call to a model. */
export function isModelCall(span: Span): boolean {
  const operation = attributeOf(span, genAiAttributes.operation)
  if (operation !== undefined) return !workAround.has(operation)
  return [genAiAttributes.provider, formerProvider].some((name) => attributeOf(span, name) !== undefined)
}
