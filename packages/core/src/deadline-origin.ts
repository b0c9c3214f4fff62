import type { Deadline } from './deadline.ts'

/** What only some deadlines know of where they come from. */
export class DeadlineOrigin {
  /** The end as the wire has it, while that agrees with our own clock. */
  epochMs: number | undefined
  /** How far a peer's clock may be off, ms; if absent, as its parent has it. */
  skewTolerance: number | undefined
  /** Another copy's deadline, whose end this is: its reason counts, and its timer. */
  other: Deadline | undefined
  /** Which attempt of the same work it stands for. */
  attempt = 1
  /** Whether whoever works under it hands it on themselves; if absent, as its parent has it. */
  sparesContext: boolean | undefined

  /** The end for the wire: as it was received, while that is what our `own` clock says, else what it says from now on. */
  agreedEnd(own: number, skewTolerance: number): number {
    const ahead = own - (this.epochMs ?? Infinity)
    // 1 ms: what two readings of a clock that counts whole milliseconds differ by
    if (!(ahead >= -1 && ahead <= skewTolerance)) this.epochMs = own
    return this.epochMs ?? own
  }
}
