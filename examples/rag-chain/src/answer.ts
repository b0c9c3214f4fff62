import { logNormal, seeded } from './random.ts'
import type { FinishReason } from './chat-protocol.ts'

/** How long the stand-in model's answers are, in tokens: log-normal, as real answers are. */
export const answerLength = { median: 25, sigma: 0.5 } as const

/** The mean number of tokens of an answer. */
export const meanAnswerTokens: number = answerLength.median * Math.exp(answerLength.sigma ** 2 / 2)

const openings = ['In short:', 'As the passages say:', 'From what was found:', 'The first passage has it:']

/** What the stand-in model answers, at most `limit` tokens of it; the same prompt always gets the same answer. */
export function answerTo(prompt: string, limit: number): { tokens: string[]; finish: FinishReason } {
  const next = seeded(prompt)
  const length = Math.max(4, Math.round(logNormal(next, answerLength)))
  const opening = openings[Math.floor(next() * openings.length)] ?? ''
  // The first line tells the model what to do; what it can answer from comes after.
  const lines = prompt.split('\n')
  const source = lines.length > 1 ? lines.slice(1).join(' ') : prompt
  const words = `${opening} ${source}`.split(/\s+/).filter((word) => word !== '')
  const tokens = Array.from(
    { length: Math.min(length, limit) },
    (_, index) => (index === 0 ? '' : ' ') + words[index % words.length],
  )
  return { tokens, finish: length > limit ? 'length' : 'stop' }
}
