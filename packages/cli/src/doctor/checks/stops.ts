import { timeText } from '../../terminal/time-text.ts'
import type { Examination } from '../examination.ts'
import { pairFor } from '../examination.ts'
import type { LeafCall } from '../leaf.ts'
import { type Check, fails, type Finding, holds, unseen } from '../finding.ts'

/** How long the service may take to notice that its caller has gone. */
const noticing = 2000

/** Work that nobody waits for ends, down to the connections that it opened. */
export const stops: Check = {
  name: 'stops',
  title: 'stops when I leave',
  async look(examination) {
    if (examination.leaf === undefined)
      return unseen('cannot be seen from outside: what happens behind the service has to be watched', 'leaf')
    try {
      return await leaveInTheMidst(examination)
    } finally {
      examination.leaf.release()
    }
  },
}

async function leaveInTheMidst({ leaf, ask, patience }: Examination): Promise<Finding> {
  const leaving = new AbortController()
  const call = leaf?.hold()
  const asked = ask(() => pairFor(patience), { stop: leaving.signal })
  const reached = await Promise.race([call, asked.then(() => undefined)])
  if (reached === undefined) {
    return unseen('this request did not reach the leaf: point what this URL calls at it', 'leaf')
  }
  const leftAt = performance.now()
  leaving.abort()
  const outcome = await overWithin(reached, noticing)
  const after = timeText(performance.now() - leftAt)
  if (outcome === 'left') return holds(`its call to the leaf was closed ${after} after I had left`)
  return fails(`its call to the leaf was still open ${after} after I had left`, 'doesNotStop')
}

async function overWithin({ over }: LeafCall, most: number): Promise<'left' | 'answered' | 'open'> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<'open'>((resolve) => {
    timer = setTimeout(() => resolve('open'), most)
  })
  try {
    return await Promise.race([over, patience])
  } finally {
    clearTimeout(timer)
  }
}
