import type { RequestView } from '../snapshot.ts'
import { find, make } from './dom.ts'
import { elapsedOf } from './filter.ts'
import { RequestRow } from './request-row.ts'
import type { Fit } from './scale.ts'

const spare = 6

/** What of the requests is shown, and when. */
export interface ListState {
  /** Those that pass the filter, the latest first. */
  readonly requests: readonly RequestView[]
  readonly selected: number | undefined
  readonly now: number
  readonly fit: Fit
}

/** The table of requests. Only the rows that can be seen exist; each belongs to one request as long as it is seen. */
export class RequestList {
  readonly #scroller = find('list-scroller', HTMLDivElement)
  readonly #table = find('list', HTMLTableElement)
  readonly #body = find('rows', HTMLTableSectionElement)
  readonly #above = spacer()
  readonly #below = spacer()
  readonly #rows = new Map<number, RequestRow>()
  readonly #select: (id: number | undefined) => void
  #state: ListState = { requests: [], selected: undefined, now: 0, fit: 'budget' }

  constructor({ select, scrolled }: { select(id: number | undefined): void; scrolled(): void }) {
    this.#select = select
    this.#body.append(this.#above, this.#below)
    this.#scroller.addEventListener('scroll', scrolled, { passive: true })
    this.#table.addEventListener('keydown', (event) => this.#onKey(event))
    this.#body.addEventListener('click', ({ target }) => {
      const row = target instanceof Element ? target.closest('tr[data-id]') : null
      if (row instanceof HTMLElement) select(Number(row.dataset['id']))
    })
  }

  render(state: ListState): void {
    this.#keepInPlace(state.requests)
    this.#state = state
    const { requests, selected } = state
    const { first, last } = this.#window(requests.length)
    const seen = requests.slice(first, last)
    const ids = new Set(seen.map(({ id }) => id))
    for (const [id, row] of this.#rows) {
      if (ids.has(id)) continue
      row.element.remove()
      this.#rows.delete(id)
    }
    let after: Element = this.#above
    for (const [index, request] of seen.entries()) {
      const row = this.#rowOf(request)
      row.update(request, { elapsed: elapsedOf(request, state.now), fit: state.fit })
      row.place({ index: first + index + 2, selected: request.id === selected })
      // moving an element that is in its place already would end its animations
      if (after.nextElementSibling !== row.element) after.after(row.element)
      after = row.element
    }
    const height = this.#rowHeight()
    setHeight(this.#above, first * height)
    setHeight(this.#below, (requests.length - last) * height)
    this.#table.setAttribute('aria-rowcount', String(requests.length + 1))
    if (selected !== undefined && ids.has(selected))
      this.#table.setAttribute('aria-activedescendant', `request-${selected}`)
    else this.#table.removeAttribute('aria-activedescendant')
  }

  focus(): void {
    this.#table.focus({ preventScroll: true })
  }

  /** A reader who has scrolled down keeps in sight what is being read, whatever comes in above. */
  #keepInPlace(requests: readonly RequestView[]): void {
    if (this.#scroller.scrollTop <= 0) return
    const before = this.#state.requests
    const top = Math.floor(this.#scroller.scrollTop / this.#rowHeight())
    const anchor = before[Math.min(top, before.length - 1)]
    if (anchor === undefined) return
    const index = requests.findIndex(({ id }) => id === anchor.id)
    if (index > -1 && index !== top) this.#scroller.scrollTop += (index - top) * this.#rowHeight()
  }

  #window(count: number): { first: number; last: number } {
    const height = this.#rowHeight()
    const first = Math.max(0, Math.floor(this.#scroller.scrollTop / height) - spare)
    const seen = Math.ceil(this.#scroller.clientHeight / height) + 2 * spare
    return { first: Math.min(first, Math.max(0, count - seen)), last: Math.min(count, first + seen) }
  }

  // the style sheet decides it, by the width of the page
  #rowHeight(): number {
    return Number.parseFloat(getComputedStyle(this.#table).getPropertyValue('--row')) || 30
  }

  #rowOf({ id }: RequestView): RequestRow {
    let row = this.#rows.get(id)
    if (row === undefined) {
      row = new RequestRow(id)
      this.#rows.set(id, row)
    }
    return row
  }

  #onKey(event: KeyboardEvent): void {
    const { requests, selected } = this.#state
    const page = Math.max(1, Math.floor(this.#scroller.clientHeight / this.#rowHeight()) - 2)
    const at = requests.findIndex(({ id }) => id === selected)
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: at + page,
      PageUp: Math.max(0, at - page),
      Home: 0,
      End: requests.length - 1,
      Enter: Math.max(0, at),
    }
    if (event.key === 'Escape') return this.#select(undefined)
    const to = moves[event.key]
    if (to === undefined) return
    event.preventDefault()
    const index = Math.min(to, requests.length - 1)
    const request = requests[index]
    if (request === undefined) return
    this.#reveal(index)
    // the next key may come before the next frame
    this.#state = { ...this.#state, selected: request.id }
    this.#select(request.id)
  }

  #reveal(index: number): void {
    const height = this.#rowHeight()
    const head = this.#body.offsetTop
    const { scrollTop, clientHeight } = this.#scroller
    if (index * height < scrollTop) this.#scroller.scrollTop = index * height
    else if ((index + 1) * height + head > scrollTop + clientHeight)
      this.#scroller.scrollTop = (index + 1) * height + head - clientHeight
  }
}

function spacer(): HTMLTableRowElement {
  const row = make('tr', 'spacer')
  row.setAttribute('aria-hidden', 'true')
  return row
}

function setHeight(row: HTMLTableRowElement, height: number): void {
  setStyle(row, 'height', `${height}px`)
  row.hidden = height === 0
}

function setStyle(element: HTMLElement, name: string, value: string): void {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value)
}
