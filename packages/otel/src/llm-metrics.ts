import { outcomes } from '@timebudget/core'
import { modelCallBuckets } from './bucket-metrics.ts'
import { genAiAttributes } from './gen-ai-metrics.ts'
import type { Recording } from './listening-metrics.ts'
import { llmAnswered, llmCallFinished } from './llm-events.ts'
import { metricLabels, metricNames } from './metric-names.ts'

const everyOutcome = outcomes.map((outcome) => ({ [metricLabels.outcome]: outcome }))

/** Calls to models, and what ladders made of them. */
export function recordLlm(recording: Recording): void {
  recordCalls(recording)
  recordAnswers(recording)
}

function recordCalls({ meter, names, listen }: Recording): void {
  const calls = meter.counter(metricNames.llmCalls, {
    description: 'Calls to models by how they ended, but those that were refused before they were made.',
    unit: '{call}',
    zeros: everyOutcome,
  })
  const firstToken = meter.duration(metricNames.llmFirstToken, {
    description:
      'From a call to the first piece of content: text, reasoning or tool arguments; only of streams.',
    buckets: modelCallBuckets,
  })
  const attributesOf = genAiAttributes(names)
  listen(llmCallFinished, (call) => {
    if (call.sdkRetry || call.outcome === 'short_circuited') return
    calls(1, { [metricLabels.outcome]: call.outcome })
    const { firstToken: milliseconds } = call.timings
    if (milliseconds !== undefined) firstToken(milliseconds, attributesOf(call))
  })
}

function recordAnswers({ meter, names, listen }: Recording): void {
  const questions = meter.counter(metricNames.llmQuestions, {
    description:
      'Questions to ladders by how they ended; degraded is an answer of a later rung, or a partial one.',
    unit: '{question}',
    zeros: everyOutcome,
  })
  const answers = meter.counter(metricNames.llmAnswers, {
    description:
      'Answers of ladders: by which rung, whether complete, and what kept the first rung from a complete one.',
    unit: '{answer}',
  })
  const cost = meter.counter(metricNames.llmCost, {
    description:
      'What questions to ladders cost, failed and abandoned calls included, in the currency of the attribute.',
    unit: '{currency}',
  })
  const ladders = names()
  const rungs = names()
  const features = names()
  const currencies = names()
  listen(llmAnswered, ({ operation, feature, outcome, answer, cost: spent }) => {
    questions(1, { [metricLabels.outcome]: outcome })
    if (spent !== undefined)
      cost(spent.amount, {
        [metricLabels.currency]: currencies.of(spent.currency),
        [metricLabels.feature]: features.of(feature ?? 'none'),
        [metricLabels.estimated]: spent.estimated === true,
      })
    if (answer === undefined) return
    answers(1, {
      [metricLabels.operation]: ladders.of(operation),
      [metricLabels.rung]: rungs.of(answer.rung),
      [metricLabels.complete]: answer.complete,
      [metricLabels.reason]: outcomes.find((each) => each === answer.reason) ?? 'none',
    })
  })
}
