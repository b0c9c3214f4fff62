import { timeText } from '../../terminal/time-text.ts'
import { answerText, canTellRefusals, isLike, isRefused, timeOf } from '../examination.ts'
import { type Check, fails, holds, unseen } from '../finding.ts'

const longPast = 600_000

/** An expired deadline is answered at once by whoever reads it, however fast the handler is. */
export const readsIt: Check = {
  name: 'reads',
  title: 'reads the deadline',
  async look(examination) {
    const { ask, plain, hasItsOwn } = examination
    const relative = await ask({ 'x-request-timeout-ms': '0' })
    const absolute = await ask({ 'x-request-deadline': String(Date.now() - longPast) })
    if (!canTellRefusals(examination))
      return unseen(`${answerText(plain)} at once without any deadline: there is no telling why`)
    const answers = `${answerText(relative)} to X-Request-Timeout-Ms: 0, ${answerText(absolute)} to a past X-Request-Deadline`
    const refused = [relative, absolute].filter((answer) => isRefused(answer, examination))
    if (refused.length === 2) return holds(answers)
    if (refused.length === 1) return fails(answers, 'onlyOneRead')
    const different = [relative, absolute].filter((answer) => !isLike(answer, plain))
    if (different.some(({ status }) => status === 504)) return fails(answers, 'outcomeLost')
    if (hasItsOwn && different.length === 0) {
      const seen = `an expired deadline changes nothing: ${answerText(relative)} after ${timeText(timeOf(relative))}, as without one`
      return unseen(`${seen}; it has deadlines of its own and reads no others, perhaps on purpose`, 'ignored')
    }
    return fails(answers, 'notRead')
  },
}
