import type { Attributes } from '@opentelemetry/api'
import { modelCallBuckets, tokenBuckets } from './bucket-metrics.ts'
import { conventional, operationAt } from './gen-ai-words.ts'
import type { Recording } from './listening-metrics.ts'
import { type FinishedCall, llmCallFinished } from './llm-events.ts'
import { genAiLabels } from './metric-names.ts'
import type { Measure } from './sane-metrics.ts'
import { errorTypeOf, isFailure } from './span-status.ts'

/**
 * Which names the metrics of the semantic conventions for generative AI get: `'v0.1'`, those of the first release of
 * their own repository, or `'v1.41'`, those of the last release before they moved there.
 */
export type GenAiNames = 'v0.1' | 'v1.41'

/** Copied, since all of them are in development: names change, and the package that has them drops the old ones. */
const durationNames: Readonly<Record<GenAiNames, { readonly whole: string; readonly firstChunk: string }>> = {
  'v0.1': {
    whole: 'gen_ai.client.inference.duration',
    firstChunk: 'gen_ai.client.inference.time_to_first_chunk',
  },
  'v1.41': {
    whole: 'gen_ai.client.operation.duration',
    firstChunk: 'gen_ai.client.operation.time_to_first_chunk',
  },
}

/** Calls to models as the semantic conventions have them. */
export function recordGenAi(recording: Recording, convention: GenAiNames): void {
  const { meter, names, listen } = recording
  const { whole, firstChunk } = durationNames[convention]
  const duration = meter.duration(whole, {
    description: 'How long a call to a model took.',
    buckets: modelCallBuckets,
  })
  const toFirstChunk = meter.duration(firstChunk, {
    description:
      'From a call to the first bytes of the stream that answers it, which need not hold any content.',
    buckets: modelCallBuckets,
  })
  const recordTokens = convention === 'v0.1' ? tokenCounters(recording) : tokenHistogram(recording)
  const attributesOf = genAiAttributes(names)
  const errorTypes = names()
  listen(llmCallFinished, (call) => {
    if (call.sdkRetry || call.outcome === 'short_circuited') return
    const attributes = attributesOf(call)
    const failure = isFailure(call.outcome) ? errorTypes.of(errorTypeOf(call.outcome, call.error)) : undefined
    duration(
      call.timings.total,
      failure === undefined ? attributes : { ...attributes, [genAiLabels.errorType]: failure },
    )
    if (call.timings.firstChunk !== undefined) toFirstChunk(call.timings.firstChunk, attributes)
    recordTokens(call, attributes)
  })
}

type RecordTokens = (call: FinishedCall, attributes: Attributes) => void

function tokenCounters({ meter }: Recording): RecordTokens {
  const unit = '{token}'
  const input = meter.counter('gen_ai.client.inference.usage.input_tokens', {
    description: "Tokens of prompts, by the provider's own count.",
    unit,
  })
  const output = meter.counter('gen_ai.client.inference.usage.output_tokens', {
    description: "Tokens of answers, by the provider's own count.",
    unit,
  })
  return function addTokens({ usage }, attributes) {
    // the convention wants 0 where the provider told nothing, and no estimates
    const { inputTokens = 0, outputTokens = 0 } = usage.estimated ? {} : usage
    const ofModality = { ...attributes, [genAiLabels.tokenModality]: 'unknown' }
    input(inputTokens, ofModality)
    output(outputTokens, ofModality)
  }
}

function tokenHistogram({ meter }: Recording): RecordTokens {
  const usage = meter.histogram('gen_ai.client.token.usage', {
    description: "Tokens of a call's prompt and answer, by the provider's own count.",
    unit: '{token}',
    buckets: tokenBuckets,
  })
  return function recordUsage({ usage: { estimated, inputTokens, outputTokens } }, attributes) {
    if (estimated) return
    recordIfKnown(usage, inputTokens, { ...attributes, [genAiLabels.tokenType]: 'input' })
    recordIfKnown(usage, outputTokens, { ...attributes, [genAiLabels.tokenType]: 'output' })
  }
}

function recordIfKnown(record: Measure, value: number | undefined, attributes: Attributes): void {
  if (value !== undefined) record(value, attributes)
}

/** What the conventions say of a call in every metric: the kind of operation, the provider, and the model if it is known. */
export function genAiAttributes(names: Recording['names']): (call: FinishedCall) => Attributes {
  const providers = names()
  const models = names()
  return function attributesOf({ url, provider, model }) {
    return {
      [genAiLabels.operation]: operationAt(url),
      [genAiLabels.provider]: conventional(providers.of(provider)),
      ...(model === undefined ? {} : { [genAiLabels.model]: models.of(model) }),
    }
  }
}
