import { type ChatEnd, messages } from '@timebudget/sse/browser'
import { language, words } from './words.ts'

/** What the page shows of how an answer has ended. */
export interface Verdict {
  readonly state: 'done' | 'stopped' | 'interrupted' | 'failed'
  /** Empty where there is nothing to explain. */
  readonly notice: string
  /** Below the answer. */
  readonly marks: readonly Mark[]
}

/** A remark on an answer: that it is not the first model's, that it is not whole, and whose it is. */
export interface Mark {
  readonly kind: 'backup' | 'incomplete' | 'source'
  readonly text: string
}

/** Judges an end by what `streamChat` says of it, and a complete stream by what the ladder says of its answer. */
export function judge({ outcome, text, message, data }: ChatEnd): Verdict {
  const answer = answerIn(data)
  const isCut = outcome !== 'done' || answer.complete === false
  const marks: Mark[] = sourceOf(answer)
  if (isCut && text !== '') marks.unshift({ kind: 'incomplete', text: words.incomplete })
  // a part of an answer is degraded too, whoever it comes from
  if (answer.degraded === true && answer.complete !== false)
    marks.unshift({ kind: 'backup', text: words.backup })
  if (!isCut) return { state: 'done', notice: '', marks }
  if (outcome === 'stopped') return { state: 'stopped', notice: message, marks }
  const state = text === '' ? 'failed' : 'interrupted'
  return { state, notice: outcome === 'done' ? cutBy(answer.reason) : message, marks }
}

interface AnswerData {
  readonly complete?: unknown
  readonly degraded?: unknown
  readonly rung?: unknown
  readonly reason?: unknown
  readonly timings?: { readonly total?: unknown } | undefined
}

function answerIn(data: unknown): AnswerData {
  return typeof data === 'object' && data !== null ? data : {}
}

/** Who has answered, and how long it took. */
function sourceOf({ rung, timings }: AnswerData): Mark[] {
  const total = timings?.total
  const parts = [rung, typeof total === 'number' ? `${(total / 1_000).toFixed(1)} s` : undefined]
  const text = parts.filter((part) => typeof part === 'string').join(' · ')
  return text === '' ? [] : [{ kind: 'source', text }]
}

/** An answer whose time was up is told from one whose model gave in. */
function cutBy(reason: unknown): string {
  const isLate = /^(deadline_exceeded|operation_timeout|total_timeout)$/.test(String(reason))
  return isLate ? messages[language].deadline : words.brokeOff
}
