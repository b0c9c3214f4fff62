import { decodeDeadline, defaultAccept, parseServerTiming } from '@timebudget/core/wire'
import type { Examination } from '../examination.ts'
import { pairFor } from '../examination.ts'
import type { LeafCall } from '../leaf.ts'
import { type Check, fails, type Finding, holds, isUnread, unseen } from '../finding.ts'

/** What the service calls is told how much time is left, and no more. */
export const passesOn: Check = {
  name: 'passes-on',
  title: 'passes the deadline on',
  async look(examination, earlier) {
    if (examination.leaf === undefined) return fromOutside(examination)
    return atTheLeaf(examination, isUnread(earlier))
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

async function atTheLeaf({ leaf, ask, patience }: Examination, isOwn: boolean): Promise<Finding> {
  const given = Math.min(patience, 5000)
  let reached: LeafCall | undefined
  void leaf?.next().then((call) => (reached = call))
  await ask(() => pairFor(given))
  leaf?.release()
  if (reached === undefined)
    return unseen('this request did not reach the leaf: point what this URL calls at it', 'leaf')
  return isOwn ? ownPassedOn(reached) : passedOn(reached, given)
}

function passedOn({ headers }: LeafCall, given: number): Finding {
  const { deadline } = decodeDeadline(headers, defaultAccept, Date.now())
  if (deadline === undefined) return nothingPassedOn()
  const { remaining, codec } = deadline
  const seen = `${Math.round(remaining)} of ${given} ms arrived at the leaf (${codec})`
  return remaining > given ? fails(`${seen}: more than it was given`, 'notPassedOn') : holds(seen)
}

/** Where it reads no deadline, what it passes on has nothing to do with what it was given. */
function ownPassedOn({ headers }: LeafCall): Finding {
  const { deadline } = decodeDeadline(headers, defaultAccept, Date.now())
  if (deadline === undefined) return nothingPassedOn()
  const { remaining, codec } = deadline
  return holds(`the leaf was told of ${Math.round(remaining)} ms, which are its own (${codec})`)
}

function nothingPassedOn(): Finding {
  return fails('its call to the leaf carried no deadline', 'notPassedOn')
}
