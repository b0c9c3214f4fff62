import type { Deadline } from './deadline.ts'
import { internals } from './deadline-internals.ts'
import { defaultSkewTolerance } from './wire/skew.ts'

// One for each, so that the operations of one request share a ledger and a listener here too.
const adopted = new WeakMap<Deadline, Deadline>()

/** A deadline that another copy of this package made, as one of ours. */
export function adopt(deadline: Deadline): Deadline {
  if (internals.isOurs(deadline)) return deadline
  let ours = adopted.get(deadline)
  if (ours === undefined) {
    ours = following(deadline)
    adopted.set(deadline, ours)
  }
  return ours
}

/** One of ours that ends when the other does. */
function following(other: Deadline): Deadline {
  const deadline = internals.fromWire({
    remaining: other.remaining(),
    epochMs: other.expiresAt,
    skewTolerance: defaultSkewTolerance,
    clock: undefined,
  })
  internals.originOf(deadline).other = other
  internals.follow(deadline, other.signal)
  return deadline
}
