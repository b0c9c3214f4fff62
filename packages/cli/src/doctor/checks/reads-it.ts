import { answerText, isForLackOfTime, timeOf } from '../examination.ts'
import { type Check, fails, holds, unseen } from '../finding.ts'

const longPast = 600_000

/** An expired deadline is answered at once by whoever reads it, however fast the handler is. */
export const readsIt: Check = {
  name: 'reads',
  title: 'reads the deadline',
  async look({ ask, plain, usual }) {
    const relative = await ask({ 'x-request-timeout-ms': '0' })
    const absolute = await ask({ 'x-request-deadline': String(Date.now() - longPast) })
    const answers = `${answerText(relative)} to X-Request-Timeout-Ms: 0, ${answerText(absolute)} to a past X-Request-Deadline`
    // where there is never enough time, only a refusal that comes at once tells anything
    if (isForLackOfTime(plain) && Math.max(timeOf(relative), timeOf(absolute)) > usual / 2)
      return unseen(`${answerText(plain)} without any deadline: its own default is too short for this URL`)
    if (isForLackOfTime(relative) && isForLackOfTime(absolute)) return holds(answers)
    if (isForLackOfTime(relative) || isForLackOfTime(absolute)) return fails(answers, 'onlyOneRead')
    if (relative.status === 504 || absolute.status === 504) return fails(answers, 'outcomeLost')
    return fails(answers, 'notRead')
  },
}
