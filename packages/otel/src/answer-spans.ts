import { currentDeadline } from '@timebudget/core'
import { describe, spanAttributes } from './attributes.ts'
import { guarded } from './guarded.ts'
import { type FinishedQuestion, llmAnswered } from './llm-events.ts'
import { operationSpanUnder } from './operation-spans.ts'

/** Says on a ladder's span which rung has answered and what the question has cost; until stopped. */
export function describeAnswers(): () => void {
  return llmAnswered.subscribe((question) =>
    guarded('the span of a question', () => describeAnswer(question), undefined),
  )
}

function describeAnswer({ answer, cost }: FinishedQuestion): void {
  const operation = operationSpanUnder(currentDeadline())
  // a deadline that cuts the question off has ended the span already
  if (operation === undefined || operation.isOver) return
  const reason = typeof answer?.reason === 'string' ? answer.reason : undefined
  describe(operation.span, {
    [spanAttributes.rung]: answer?.rung,
    [spanAttributes.answerComplete]: answer?.complete,
    [spanAttributes.answerReason]: reason,
    [spanAttributes.cost]: Number.isFinite(cost?.amount) ? cost?.amount : undefined,
    [spanAttributes.currency]: cost?.currency,
    [spanAttributes.costEstimated]: cost === undefined ? undefined : cost.estimated === true,
  })
}
