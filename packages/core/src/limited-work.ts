import type { LedgerEntry } from './ledger.ts'

/** The part of a request that a deadline is the limit of. */
export class LimitedWork {
  readonly label: string | undefined
  /** Whether running out of time is an operation's timeout rather than the request's deadline. */
  readonly isOperation: boolean
  /** The operation that runs in it. */
  entry: LedgerEntry | undefined

  constructor(label: string | undefined, { isOperation }: { readonly isOperation: boolean }) {
    this.label = label
    this.isOperation = isOperation
  }
}
