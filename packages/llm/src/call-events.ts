import { defineEvent, type EventChannel } from '@timebudget/core'
import type { LlmCall } from './call-record.ts'

/** A call to a model has ended, in exactly one way. */
export const llmCallFinished: EventChannel<LlmCall> = defineEvent('timebudget:llm.call.finished')
