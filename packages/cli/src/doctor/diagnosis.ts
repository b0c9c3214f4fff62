import { clocks } from './checks/clocks.ts'
import { inTime } from './checks/in-time.ts'
import { malformed } from './checks/malformed.ts'
import { neverExtends } from './checks/never-extends.ts'
import { passesOn } from './checks/passes-on.ts'
import { readsIt } from './checks/reads-it.ts'
import { stops } from './checks/stops.ts'
import type { Examination } from './examination.ts'
import type { Check, Finding } from './finding.ts'

/** A check and what it came to. */
export interface Diagnosis {
  readonly check: Check
  readonly finding: Finding
}

// work that does not stop would disturb what comes after it: those that leave it behind are last
const checks: readonly Check[] = [readsIt, malformed, neverExtends, passesOn, clocks, inTime, stops]

/** Makes one check after the other, telling of each as soon as it is done; ends early once stopped. */
export async function diagnose(
  examination: Examination,
  stop: AbortSignal,
  tell: (diagnosis: Diagnosis) => void,
): Promise<readonly Diagnosis[]> {
  const earlier = new Map<string, Finding>()
  const made: Diagnosis[] = []
  for (const check of checks) {
    const finding = await check.look(examination, earlier)
    // what was seen while everything was being stopped tells nothing
    if (stop.aborted) break
    earlier.set(check.name, finding)
    made.push({ check, finding })
    tell({ check, finding })
  }
  return made
}
