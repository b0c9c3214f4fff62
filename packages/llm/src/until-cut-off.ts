import type { RunningOperation, TimeBudgetError } from '@timebudget/core'

/** Lets one thing after another be awaited within an operation, without piling up what waits for its end. */
export class UntilCutOff {
  #reason: TimeBudgetError | undefined
  #reject: ((reason: TimeBudgetError) => void) | undefined

  constructor(running: RunningOperation) {
    running.onCutOff((reason) => {
      this.#reason = reason
      this.#reject?.(reason)
    })
  }

  /** What the promise settles with, or the reason of the operation's end if that comes first. */
  async of<T>(promise: Promise<T>): Promise<T> {
    if (this.#reason !== undefined) {
      promise.catch(ignore)
      throw this.#reason
    }
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject
      promise.then(resolve, reject)
    })
  }
}

function ignore(): void {}
