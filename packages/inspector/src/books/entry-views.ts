import type { LedgerEntry } from '@timebudget/core'
import { cleanText } from '../clean-text.ts'
import type { EntryView } from '../snapshot.ts'
import { roundToTenths, tenths } from './tenths.ts'

/** What is shown of one request's operations; a ledger may hold 1,024. */
export const mostEntries = 128

const deepest = 32

interface Branch {
  readonly entry: LedgerEntry
  readonly depth: number
  readonly parts: Branch[]
}

/** A ledger's entries as the page draws them: each after the one it is part of, cleaned and cut. */
export function viewEntries(
  entries: readonly LedgerEntry[],
  codeOf: (entry: LedgerEntry) => string | undefined,
): EntryView[] {
  const views: EntryView[] = []
  walk(branchesOf(entries.slice(0, mostEntries)), ({ entry, depth }) => {
    views.push({
      name: cleanText(entry.name),
      depth,
      start: roundToTenths(entry.start),
      remaining: tenths(entry.remaining),
      // of a peer's part the ledger has only what its caller had left
      granted: entry.source === 'peer' ? null : tenths(entry.granted),
      floor: roundToTenths(entry.floor),
      reserve: roundToTenths(entry.reserve),
      spent: tenths(entry.spent),
      outcome: entry.outcome ?? null,
      peer: entry.source === 'peer',
      code: codeOf(entry) ?? null,
    })
  })
  return views
}

/** The entries as a tree. Entries know each other by their paths alone, and a name may itself have dots in it. */
function branchesOf(entries: readonly LedgerEntry[]): Branch[] {
  const roots: Branch[] = []
  const latest = new Map<string, Branch>()
  for (const entry of entries) {
    const parent = nearestAbove(entry, latest)
    const branch = { entry, depth: parent === undefined ? 0 : Math.min(parent.depth + 1, deepest), parts: [] }
    if (parent === undefined) roots.push(branch)
    else parent.parts.push(branch)
    latest.set(entry.path, branch)
  }
  return roots
}

function nearestAbove({ path, name }: LedgerEntry, known: ReadonlyMap<string, Branch>): Branch | undefined {
  let above = path.slice(0, Math.max(0, path.length - name.length - 1))
  // what lies between may be missing: a peer reports 64 entries at most
  for (let steps = 0; above !== '' && steps < deepest; steps += 1) {
    const branch = known.get(above)
    if (branch !== undefined) return branch
    above = above.slice(0, Math.max(0, above.lastIndexOf('.')))
  }
  return undefined
}

function walk(branches: readonly Branch[], visit: (branch: Branch) => void): void {
  for (const branch of branches.toSorted((one, other) => one.entry.start - other.entry.start)) {
    visit(branch)
    walk(branch.parts, visit)
  }
}
