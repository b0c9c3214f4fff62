import { format } from 'node:util'

/** Runs work inside a context of an observer's: calls it, at once. */
export type WorkWrapper = (work: () => void) => void

/** Runs the work through the wrapper: once, and with its own end, whether the wrapper throws, forgets it or repeats it. */
export function runWrapped<T>(wrap: WorkWrapper, work: () => T): T {
  let end: (() => T) | undefined
  try {
    wrap(() => {
      end ??= endOf(work)
    })
  } catch (error) {
    process.emitWarning(format('an observer around an operation failed: %s', error), 'TimeBudgetWarning')
  }
  return (end ?? endOf(work))()
}

function endOf<T>(work: () => T): () => T {
  try {
    const value = work()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}
