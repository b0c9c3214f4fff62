import { setImmediate } from 'node:timers/promises'

/** What the process is warned of by us while the work runs. */
export async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = []
  const note = ({ name, message }: Error): void => {
    if (name === 'TimeBudgetWarning') warnings.push(message)
  }
  process.on('warning', note)
  try {
    await work()
    await setImmediate()
    return warnings
  } finally {
    process.off('warning', note)
  }
}
