import { type Outcome, outcomeOf } from '@timebudget/core'
import type { RungAttempt } from './answer.ts'
import type { RungScope } from './rungs/rung.ts'

/** How a rung's turn has ended. */
interface TurnEnd {
  /** The attempt that answered, 0 if none was begun; absent where nobody has said. */
  readonly attempt?: number | undefined
  readonly outcome: Outcome
  readonly error: unknown
}

/** Notes each attempt of one rung's turn once, in order; what an abandoned attempt tells when the turn is over is too late. */
export class AttemptNotes implements Pick<RungScope, 'noteBegun' | 'noteAttempt'> {
  readonly #rung: string
  readonly #note: (attempt: RungAttempt) => void
  readonly #now: () => number
  readonly #turnBegunAt: number
  #running: { readonly attempt: number; readonly begunAt: number } | undefined
  #hasNoted = false
  #isOver = false

  constructor(
    rung: string,
    { note, now }: { readonly note: (attempt: RungAttempt) => void; readonly now: () => number },
  ) {
    this.#rung = rung
    this.#note = note
    this.#now = now
    this.#turnBegunAt = now()
  }

  noteBegun(attempt: number): void {
    this.#running = { attempt, begunAt: this.#now() }
  }

  noteAttempt({ attempt, error, spent }: Parameters<RungScope['noteAttempt']>[0]): void {
    if (this.#isOver) return
    this.#running = undefined
    this.#hasNoted = true
    this.#note({ rung: this.#rung, attempt, outcome: outcomeOf(error), error, spent })
  }

  /** The turn is over, by its answer or by what it failed with; the attempt that failed may have been noted as such. */
  close({ attempt, outcome, error }: TurnEnd): void {
    this.#isOver = true
    const running = this.#running
    if (attempt === undefined && running === undefined && this.#hasNoted) return
    const nth = attempt ?? running?.attempt ?? (outcome === 'short_circuited' ? 0 : 1)
    const spent = this.#now() - (running?.begunAt ?? this.#turnBegunAt)
    this.#note({ rung: this.#rung, attempt: nth, outcome, error, spent })
  }
}
