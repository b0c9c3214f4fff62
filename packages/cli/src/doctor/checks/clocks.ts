import { memberOf } from '../../request/verdict.ts'
import type { Exchange } from '../../request/exchange.ts'
import { timeText } from '../../terminal/time-text.ts'
import type { Examination } from '../examination.ts'
import { type Check, fails, type Finding, holds, unseen } from '../finding.ts'

/** From here on a difference is worth a warning, ms. */
const worthWarning = 20
/** A `Date` header counts in seconds. */
const second = 1000
/** What a `Date` tells through an answer that comes quickly; with more than that a clock cannot be called right, ms. */
const roughest = 600

/** The service's clock agrees with this machine's. */
export const clocks: Check = {
  name: 'clocks',
  title: 'has the right time',
  async look(examination) {
    const reading = await bestReading(examination)
    if (reading === undefined) return unseen('it tells no time: neither a Date header nor serverNow')
    return verdict(reading)
  },
}

/** How far its clock is ahead of ours, and how sure that is; ms. */
interface Reading {
  readonly ahead: number
  readonly uncertainty: number
}

/** A refusal by an absolute deadline says `serverNow`; of several the one that took the least time is the surest. */
async function bestReading({ ask }: Examination): Promise<Reading | undefined> {
  let best: Reading | undefined
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const begunAt = Date.now()
    const answer = await ask({ 'x-request-deadline': String(begunAt - 600_000), 'x-request-timeout-ms': '0' })
    const reading = readingOf(answer, begunAt)
    if (reading === undefined || reading.uncertainty > second / 2) return best ?? reading
    if (best === undefined || reading.uncertainty < best.uncertainty) best = reading
  }
  return best
}

function readingOf({ body, headers, sentAt, firstByteAt }: Exchange, begunAt: number): Reading | undefined {
  if (sentAt === undefined || firstByteAt === undefined) return undefined
  const halfWay = (firstByteAt - sentAt) / 2
  const ourNow = begunAt + sentAt + halfWay
  const exact = memberOf(body, 'serverNow')
  if (typeof exact === 'number') return { ahead: exact - ourNow, uncertainty: halfWay + 1 }
  const rough = Date.parse(headers.date ?? '') + second / 2
  return Number.isNaN(rough) ? undefined : { ahead: rough - ourNow, uncertainty: halfWay + second / 2 + 1 }
}

function verdict({ ahead, uncertainty }: Reading): Finding {
  const seen = `its clock is ${timeText(Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead of'} this one, give or take ${timeText(uncertainty)}`
  if (Math.abs(ahead) - uncertainty > worthWarning) return fails(seen, 'clock')
  return uncertainty > roughest
    ? unseen(`${seen}: too rough to judge, since its answers are slow`)
    : holds(seen)
}
