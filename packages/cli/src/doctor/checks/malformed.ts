import { answerText, isLike, isRefused, type Stamps } from '../examination.ts'
import { type Check, fails, holds, unjudged, unseen } from '../finding.ts'

const unreadable: readonly Stamps[] = [
  { 'x-request-timeout-ms': 'soon' },
  { 'x-request-timeout-ms': '-1' },
  { 'x-request-timeout-ms': '1e3' },
  // seconds, which must not be taken for a moment in 1970
  { 'x-request-deadline': '1767225605' },
]

/** What cannot be read is ignored, or refused with 400, and never means that time is up. */
export const malformed: Check = {
  name: 'malformed',
  title: 'survives what it cannot read',
  async look(examination, earlier) {
    const { ask, plain } = examination
    const nothingToMisread = unjudged(earlier)
    if (nothingToMisread !== undefined) return nothingToMisread
    let refused = 0
    for (const stamps of unreadable) {
      const answer = await ask(stamps)
      if (isLike(answer, plain) && !isRefused(answer, examination)) continue
      if (answer.status === 400) {
        refused += 1
        continue
      }
      const [name, value] = Object.entries(stamps)[0] ?? []
      const seen = `${name}: ${String(value)} gets ${answerText(answer)}; without it there is ${answerText(plain)}`
      if (answer.ending === 'gave_up') return unseen(seen)
      return fails(seen, 'malformed')
    }
    return holds(
      refused === 0
        ? `${unreadable.length} unreadable headers were ignored`
        : `${refused} of ${unreadable.length} unreadable headers were refused with 400`,
    )
  },
}
