import type { AdviceName } from './advice.ts'
import type { Examination } from './examination.ts'

/** What a check came to: `unseen` is what cannot be told from outside, or not in this way. */
export interface Finding {
  readonly state: 'holds' | 'fails' | 'unseen'
  /** What was seen, in a sentence without a full stop. */
  readonly seen: string
  /** What to change, where something fails or could be seen with more. */
  readonly advice?: AdviceName
}

/** What the checks before it have come to, by name. */
export type Earlier = ReadonlyMap<string, Finding>

/** A question about the service. */
export interface Check {
  readonly name: string
  /** In a few words, as the report's left column says it. */
  readonly title: string
  look(examination: Examination, earlier: Earlier): Promise<Finding>
}

/** It is so. */
export function holds(seen: string): Finding {
  return { state: 'holds', seen }
}

/** It is not so. */
export function fails(seen: string, advice: AdviceName): Finding {
  return { state: 'fails', seen, advice }
}

/** It cannot be told. */
export function unseen(seen: string, advice?: AdviceName): Finding {
  return { state: 'unseen', seen, ...(advice === undefined ? {} : { advice }) }
}

/** Whether a check before has found that no deadline is read at all. */
export function isUnread(earlier: Earlier): boolean {
  const advice = earlier.get('reads')?.advice
  return advice === 'notRead' || advice === 'ignored'
}

/** What to say where there is nothing to see unless deadlines are read; `undefined` where they are. */
export function unjudged(earlier: Earlier): Finding | undefined {
  if (isUnread(earlier)) return unseen('not judged: it reads no deadline')
  if (earlier.get('reads')?.state !== 'unseen') return undefined
  return unseen('not judged: whether it reads deadlines could not be told')
}
