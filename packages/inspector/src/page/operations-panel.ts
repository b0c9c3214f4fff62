import type { OperationTotals, Snapshot } from '../snapshot.ts'
import { find, make } from './dom.ts'
import { count, duration } from './format.ts'
import { type Column, card, outcomeShares, table } from './tables.ts'

const columns: readonly Column<OperationTotals>[] = [
  {
    title: 'Operation',
    show: ({ name, peer }) =>
      make('span', 'name-cell', name, ...(peer ? [' ', make('span', 'tag', 'peer')] : [])),
  },
  { title: 'Count', number: true, show: (row) => count(row.count) },
  { title: 'P50', number: true, show: ({ p50 }) => duration(p50) },
  { title: 'P95', number: true, show: ({ p95 }) => duration(p95) },
  { title: 'Floor', number: true, show: floorOf },
  { title: 'Retries', number: true, show: ({ retries }) => (retries === 0 ? '–' : count(retries)) },
  { title: 'Late work', number: true, show: ({ late }) => (late === 0 ? '–' : count(late)) },
  { title: 'Outcomes', show: ({ outcomes }) => outcomeShares(outcomes) },
]

/** The totals of each operation over all requests. */
export function renderOperations({ operations, counts }: Snapshot): void {
  const panel = find('panel-operations', HTMLElement)
  const requests =
    counts.outcomes.length === 0
      ? make('p', 'empty', 'None has finished yet.')
      : outcomeShares(counts.outcomes)
  const totals =
    operations.length === 0
      ? make('p', 'empty', 'No operation has ended yet.')
      : table('Totals by operation', columns, operations)
  panel.replaceChildren(
    card(`${count(counts.finished)} requests finished, ${count(counts.running)} in flight`, requests),
    card('Operations', totals, make('p', 'quiet', 'P50 and P95 are of the latest 256 that were begun.')),
  )
}

function floorOf({ floor, learned }: OperationTotals): HTMLElement {
  if (learned === null) return make('span', '', floor === null ? '–' : duration(floor))
  const element = make('span', '', duration(learned.floor), ' ', make('span', 'tag', 'learned'))
  element.title = `last: ${learned.decision.replaceAll('_', ' ')}, ${Math.round(learned.chance * 100)} % chance of finishing`
  return element
}
