import { decodeDeadline, defaultAccept, parseServerTiming } from '@timebudget/core/wire'
import type { Examination } from '../examination.ts'
import { pairFor } from '../examination.ts'
import type { LeafCall } from '../leaf.ts'
import { type Check, fails, type Finding, holds, unseen } from '../finding.ts'

/** What the service calls is told how much time is left, and no more. */
export const passesOn: Check = {
  name: 'passes-on',
  title: 'passes the deadline on',
  async look(examination) {
    return examination.leaf === undefined ? fromOutside(examination) : atTheLeaf(examination)
  },
}

async function fromOutside({ ask, patience }: Examination): Promise<Finding> {
  const { headers } = await ask(() => pairFor(patience))
  const told = parseServerTiming(String(headers['server-timing'] ?? ''))
  if (told.length === 0) return unseen('it tells nothing of its calls (no Server-Timing)', 'leaf')
  const nested = told.filter(({ path }) => told.some((parent) => path.startsWith(`${parent.path}.`))).length
  const parts = `${told.length} ${told.length === 1 ? 'operation' : 'operations'}, ${nested} within others`
  return unseen(
    `Server-Timing tells of ${parts}; whether they were told the deadline only they can say`,
    'leaf',
  )
}

async function atTheLeaf({ leaf, ask, patience }: Examination): Promise<Finding> {
  const given = Math.min(patience, 5000)
  let reached: LeafCall | undefined
  void leaf?.next().then((call) => (reached = call))
  await ask(() => pairFor(given))
  leaf?.release()
  return passedOn(reached, given)
}

function passedOn(reached: LeafCall | undefined, given: number): Finding {
  if (reached === undefined)
    return unseen('this request did not reach the leaf: point what this URL calls at it', 'leaf')
  const { deadline } = decodeDeadline(reached.headers, defaultAccept, Date.now())
  if (deadline === undefined) return fails('its call to the leaf carried no deadline', 'notPassedOn')
  const { remaining, codec } = deadline
  const seen = `${Math.round(remaining)} of ${given} ms arrived at the leaf (${codec})`
  return remaining > given ? fails(`${seen}: more than it was given`, 'notPassedOn') : holds(seen)
}
