import { decodeDeadline, defaultAccept } from '@timebudget/core/wire'
import { timeText } from '../../terminal/time-text.ts'
import {
  answerText,
  type Examination,
  isForLackOfTime,
  isLike,
  isRefused,
  type Stamps,
} from '../examination.ts'
import { type Check, fails, type Finding, holds, unjudged } from '../finding.ts'

const endless: Stamps = { 'x-request-deadline': '9999999999999', 'x-request-timeout-ms': '9999999999' }
const asked = 9_999_999_999
const contradictory: Stamps = { 'x-request-timeout-ms': ['60000', '0'], 'grpc-timeout': '1H' }

/** No header makes a budget longer than the service's own maximum, or breaks its timers. */
export const neverExtends: Check = {
  name: 'never-extends',
  title: 'is not talked into more time',
  async look(examination, earlier) {
    const { ask, plain, leaf } = examination
    let clamp: Finding | undefined
    void leaf?.next().then(({ headers }) => (clamp = clampSeen(headers)))
    const answer = await ask(endless)
    leaf?.release()
    // where its own default is too short for this URL, more time may well end otherwise
    const isBroken = isForLackOfTime(plain) ? isRefused(answer, examination) : !isLike(answer, plain)
    if (isBroken) {
      const seen = `a deadline 115 days away gets ${answerText(answer)}; without one there is ${answerText(plain)}`
      return fails(seen, 'overflow')
    }
    if (clamp?.state === 'fails') return clamp
    return unjudged(earlier) ?? contradiction(examination, clamp?.seen)
  },
}

function clampSeen(headers: Parameters<typeof decodeDeadline>[0]): Finding | undefined {
  const { deadline } = decodeDeadline(headers, defaultAccept, Date.now())
  if (deadline === undefined) return undefined
  if (deadline.remaining >= asked - 60_000) return fails('115 days were passed on as they came', 'noMaximum')
  return holds(`115 days were cut to ${timeText(deadline.remaining)}`)
}

async function contradiction(examination: Examination, clamp: string | undefined): Promise<Finding> {
  const answer = await examination.ask(contradictory)
  const before = clamp ?? '115 days did no harm; its maximum cannot be seen from outside'
  if (isRefused(answer, examination)) return holds(`${before}; of several deadlines the earliest counted`)
  return fails(
    `${before}; but of 0, 60 s and an hour it took a later one: ${answerText(answer)}`,
    'notEarliest',
  )
}
