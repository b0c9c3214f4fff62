import type { OutcomeCount } from '../snapshot.ts'
import { make, place, sign } from './dom.ts'
import { count, percent } from './format.ts'
import { nameOf, verdictOf } from './outcomes.ts'

/** A column of a table of figures. */
export interface Column<T> {
  readonly title: string
  readonly number?: boolean
  readonly show: (row: T) => Node | string
}

/** A table of figures that scrolls sideways where the page is narrow. */
export function table<T>(caption: string, columns: readonly Column<T>[], rows: readonly T[]): HTMLElement {
  const head = columns.map(({ title, number }) => {
    const cell = make('th', number === true ? 'number' : '', title)
    cell.scope = 'col'
    return cell
  })
  const lines = rows.map((row) =>
    make(
      'tr',
      '',
      ...columns.map(({ title, number, show }, index) => {
        const cell = make(index === 0 ? 'th' : 'td', number === true ? 'number' : '', show(row))
        if (index === 0) cell.scope = 'row'
        // for where the page is narrow and the head is not shown
        cell.dataset['title'] = title
        return cell
      }),
    ),
  )
  const element = make(
    'table',
    'figures-table',
    make('caption', 'unseen', caption),
    make('thead', '', make('tr', '', ...head)),
    make('tbody', '', ...lines),
  )
  const frame = make('div', 'table-frame', element)
  frame.tabIndex = 0
  frame.setAttribute('role', 'region')
  frame.setAttribute('aria-label', caption)
  return frame
}

/** The shares of outcomes as one bar and in words. */
export function outcomeShares(outcomes: readonly OutcomeCount[]): HTMLElement {
  const whole = outcomes.reduce((sum, each) => sum + each.count, 0)
  const bar = make('div', 'shares')
  bar.setAttribute('aria-hidden', 'true')
  let left = 0
  for (const each of outcomes) {
    const width = (each.count / whole) * 100
    bar.append(place(make('i', `spent ${verdictOf(each.outcome)}`), { left, width }))
    left += width
  }
  const words = outcomes.map(({ outcome, count: times }) => {
    const item = make('li', '', sign(verdictOf(outcome)), `${nameOf(outcome)} ${percent(times / whole)}`)
    item.title = `${count(times)} of ${count(whole)}`
    return item
  })
  return make('div', 'outcome-shares', bar, make('ul', '', ...words))
}

/** A titled part of a view. */
export function card(title: string, ...content: readonly (Node | string)[]): HTMLElement {
  return make('section', 'card', make('h2', '', title), ...content)
}

/** One big figure with what it means. */
export function figure(name: string, value: string, note = ''): HTMLElement {
  return make('div', 'big-figure', make('dt', '', name), make('dd', '', value), make('dd', 'quiet', note))
}
