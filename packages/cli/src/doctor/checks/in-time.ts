import type { Exchange } from '../../request/exchange.ts'
import { judge, type ProbeOutcome } from '../../request/verdict.ts'
import { timeText } from '../../terminal/time-text.ts'
import { answerText, type Examination, pairFor, timeOf } from '../examination.ts'
import { type Check, fails, type Finding, holds, unjudged, unseen } from '../finding.ts'

/** Less time than this to halve, and the network's own moods decide. */
const shortestUsual = 40
/** How late the 504 may come here: the way back, and event loops that have other things to do. */
const tolerance = 250
const heldBudget = 500

/** The answer is there at the deadline, finished or not. */
export const inTime: Check = {
  name: 'in-time',
  title: 'answers 504 by the deadline',
  async look(examination, earlier) {
    const { usual, leaf, ask } = examination
    const nothingToKeepTo = unjudged(earlier)
    if (nothingToKeepTo !== undefined) return nothingToKeepTo
    if (leaf !== undefined) return verdictOf(await withLeaf(examination))
    if (usual < shortestUsual) {
      return unseen(
        `it answers in ${timeText(usual)}: too fast to run out of time. Give a URL that takes ${shortestUsual} ms or more, or --leaf`,
      )
    }
    const budget = Math.floor(usual / 2)
    return verdictOf({ answer: await ask(() => pairFor(budget)), budget })
  },
}

interface Trial {
  readonly answer: Exchange
  /** Milliseconds. */
  readonly budget: number
}

/** What it waits for never comes, so that it has to give up by itself. */
async function withLeaf({ leaf, ask, usual }: Examination): Promise<Trial> {
  const budget = Math.max(heldBudget, Math.ceil(usual * 2))
  void leaf?.hold()
  try {
    return { answer: await ask(() => pairFor(budget), { patience: budget + 2000 }), budget }
  } finally {
    leaf?.release()
  }
}

function verdictOf({ answer, budget }: Trial): Finding {
  const took = timeOf(answer)
  const late = took - budget
  const byEvent = answer.events?.error === undefined ? '' : ' with an error event at its end'
  const seen = `${answerText(answer)}${byEvent} after ${timeText(took)}, of ${timeText(budget)}`
  const isTold = answer.ending === 'cut_off' || tellsOfTooLittleTime(answer)
  const isOverAtLast = isTold || answer.status === 504
  if (isOverAtLast && late <= tolerance) return isTold ? holds(seen) : fails(seen, 'outcomeLost')
  if (isOverAtLast) return fails(`${seen}: ${timeText(late)} late`, 'late')
  if (late <= 0) return unseen(`${seen}: it was faster this time. Try again, or give a slower URL`)
  return fails(seen, 'late')
}

// an operation that keeps a reserve, or has a timeout of its own, ends before the request does
const tooLittleTime: ReadonlySet<ProbeOutcome> = new Set([
  'deadline_exceeded',
  'short_circuited',
  'operation_timeout',
  'shed',
  'connect_timeout',
  'first_token_timeout',
  'stream_stalled',
  'total_timeout',
])

/** Whether its header, or the `error` event of its stream, says so. */
function tellsOfTooLittleTime(answer: Exchange): boolean {
  return answer.ending === 'complete' && tooLittleTime.has(judge(answer, Infinity).outcome)
}
