import type { BreakerView, QueueView, ServiceView, SkewView, Snapshot } from '../snapshot.ts'
import { find, make, sign } from './dom.ts'
import { count, duration } from './format.ts'
import { type Column, card, figure, table } from './tables.ts'

/** From here on a clock is worth a look. */
const notableSkew = 20

const skewColumns: readonly Column<SkewView>[] = [
  { title: 'Peer', show: ({ peer }) => peer },
  {
    title: 'Skew',
    number: true,
    show: ({ last }) => make('span', isOff(last) ? 'notable' : '', signed(last), isOff(last) ? ' !' : ''),
  },
  { title: 'Least', number: true, show: ({ least }) => signed(least) },
  { title: 'Most', number: true, show: ({ most }) => signed(most) },
  { title: 'Requests', number: true, show: (row) => count(row.count) },
]

const queueColumns: readonly Column<QueueView>[] = [
  { title: 'Queue', show: ({ name }) => name },
  { title: 'Running', number: true, show: ({ running }) => count(running) },
  { title: 'Waiting', number: true, show: ({ waiting }) => count(waiting) },
  { title: 'Admitted', number: true, show: ({ admitted }) => count(admitted) },
  { title: 'Shed', number: true, show: ({ shed }) => count(shed) },
  { title: 'Left', number: true, show: ({ left }) => count(left) },
  { title: 'Last wait', number: true, show: ({ waited }) => duration(waited) },
  { title: 'Longest', number: true, show: ({ waitedMost }) => duration(waitedMost) },
]

/** Clocks, breakers, queues, the event loop, headers that could not be read. */
export function renderService({ service, now }: Snapshot): void {
  const { skews, breakers, queues } = service
  const breakerColumns: readonly Column<BreakerView>[] = [
    { title: 'Breaker', show: ({ name }) => name },
    { title: 'State', show: stateOf },
    { title: 'For', number: true, show: ({ since }) => duration(Math.max(0, now - since)) },
    { title: 'Opened', number: true, show: ({ opened }) => count(opened) },
  ]
  find('panel-service', HTMLElement).replaceChildren(
    card(
      'Clock skew',
      orNone(skews, 'No peer has sent an absolute and a relative deadline yet.', () =>
        table('Clock skew by peer', skewColumns, skews),
      ),
      make('p', 'quiet', 'A peer’s clock against this one, transit included; budgets do not depend on it.'),
    ),
    card(
      'Breakers',
      orNone(breakers, 'No breaker has moved.', () => table('Breakers', breakerColumns, breakers)),
    ),
    card(
      'Queues',
      orNone(queues, 'Nobody has asked a deadline queue.', () => table('Queues', queueColumns, queues)),
    ),
    card('This process', make('dl', 'big-figures', ...processFigures(service))),
  )
}

function processFigures({ lag, malformed }: ServiceView): HTMLElement[] {
  const unread = malformed.reduce((sum, { count: times }) => sum + times, 0)
  return [
    figure(
      'Event loop lag',
      lag === null ? '–' : duration(lag.last),
      lag === null ? 'not watched, or below its threshold' : `at most ${duration(lag.most)}`,
    ),
    figure(
      'Malformed headers',
      count(unread),
      malformed.map(({ header, count: times }) => `${header} ${count(times)}`).join(', '),
    ),
  ]
}

function stateOf({ state }: BreakerView): HTMLElement {
  const verdict = state === 'open' ? 'failed' : state === 'closed' ? 'ok' : 'degraded'
  return make('span', 'state', sign(verdict), state.replaceAll('_', ' '))
}

function orNone(rows: readonly unknown[], none: string, draw: () => HTMLElement): HTMLElement {
  return rows.length === 0 ? make('p', 'empty', none) : draw()
}

function isOff(skew: number): boolean {
  return Math.abs(skew) >= notableSkew
}

function signed(skew: number): string {
  return skew > 0 ? `+${duration(skew)}` : duration(skew)
}
