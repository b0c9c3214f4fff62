import type { EntryView, RequestView, WholeRequest } from '../snapshot.ts'
import { cell, make, place, placeAt, setText, sign } from './dom.ts'
import { duration, limit } from './format.ts'
import { nameOf, verdictOf } from './outcomes.ts'
import { barsOf, type Fit, positionOf, type Scale, type Span, ticksOf, waterfallScale } from './scale.ts'

/** How a request stands at this moment, and how it is to be drawn. */
export interface WaterfallState {
  readonly elapsed: number
  readonly fit: Fit
  readonly pointed: number | undefined
}

const columns = ['Operation', 'Outcome', 'Spent', 'Left at start', 'Granted'] as const

/** One request's operations along a time axis, with what each was granted, its floor and reserve, and the deadline. */
export class Waterfall {
  readonly element: HTMLElement
  readonly #axis = make('div', 'axis')
  readonly #body = make('tbody')
  readonly #none = make('p', 'quiet none', 'No operations were noted in this request.')
  readonly #rows: WaterfallRow[] = []
  #drawn: (WaterfallState & { readonly request: WholeRequest }) | undefined

  constructor(point: (index: number | undefined) => void) {
    const titles = columns.map((title) => columnHead(title, title.toLowerCase().replaceAll(' ', '-')))
    const axisHead = columnHead('', 'lane')
    axisHead.append(make('span', 'unseen', 'Waterfall'), this.#axis)
    const head = make('thead', '', make('tr', '', ...titles, axisHead))
    const table = make('table', 'waterfall', make('caption', 'unseen', 'Operations'), head, this.#body)
    this.element = make('div', 'waterfall-scroller', table, this.#none, legend())
    this.#body.addEventListener('click', ({ target }) => point(indexOf(target)))
    this.#body.addEventListener('pointermove', ({ target, pointerType }) => {
      const index = indexOf(target)
      if (pointerType === 'mouse' && index !== this.#drawn?.pointed) point(index)
    })
    this.#body.addEventListener('focusin', ({ target }) => point(indexOf(target)))
  }

  render(request: WholeRequest, state: WaterfallState): void {
    const drawn = this.#drawn
    const isSame = drawn?.request === request && drawn.fit === state.fit && drawn.pointed === state.pointed
    if (isSame && request.outcome !== null) return
    this.#drawn = { ...state, request }
    const scale = waterfallScale(request, state.elapsed, state.fit)
    const ticks = ticksOf(scale)
    this.#axis.replaceChildren(...axisMarks(request, { ticks, scale }))
    for (const [index, entry] of request.entries.entries()) {
      const row = (this.#rows[index] ??= new WaterfallRow(index))
      row.update(entry, { elapsed: state.elapsed, scale, ticks, running: request.outcome === null })
      row.element.classList.toggle('pointed', index === state.pointed)
      if (row.element.parentNode === null) this.#body.append(row.element)
    }
    for (const row of this.#rows.splice(request.entries.length)) row.element.remove()
    this.#none.hidden = request.entries.length > 0 || request.changed === 0
  }
}

interface RowState {
  readonly elapsed: number
  readonly scale: Scale
  readonly ticks: readonly number[]
  /** Whether its request runs. */
  readonly running: boolean
}

class WaterfallRow {
  readonly element: HTMLTableRowElement
  readonly #name = make('button', 'name')
  readonly #head = make('th', 'operation')
  readonly #outcome = cell('outcome')
  readonly #spent = cell('spent number')
  readonly #left = cell('left-at-start number')
  readonly #granted = cell('granted number')
  readonly #lane = make('div', 'lane-inner')
  #entry: EntryView | undefined

  constructor(index: number) {
    this.#head.scope = 'row'
    const lane = cell('lane', this.#lane)
    lane.setAttribute('aria-hidden', 'true')
    this.element = make('tr', '', this.#head, this.#outcome, this.#spent, this.#left, this.#granted, lane)
    this.element.dataset['index'] = String(index)
  }

  update(entry: EntryView, state: RowState): void {
    if (entry !== this.#entry) this.#describe(entry, state)
    const running = entry.outcome === null && state.running && !entry.peer
    setText(this.#spent, duration(entry.spent ?? (running ? state.elapsed - entry.start : null)))
    this.#draw(entry, state)
    this.#entry = entry
  }

  #describe(entry: EntryView, { running }: RowState): void {
    const { name, depth, peer, outcome, code } = entry
    const verdict = verdictOf(outcome)
    setText(this.#name, name === '' ? '(no name)' : name)
    this.#name.title = name
    this.#head.style.setProperty('--depth', String(Math.min(depth, 8)))
    this.#head.replaceChildren(this.#name, ...(peer ? [' ', make('span', 'tag', 'peer')] : []))
    const word = outcome === null && !running ? 'left running' : nameOf(outcome)
    // our own codes say what the outcome says
    const isTold = code === null || verdict !== 'failed'
    const label = make('span', 'label', isTold ? word : `${word} · ${code}`)
    label.title = label.textContent
    this.#outcome.replaceChildren(sign(verdict), label)
    setText(this.#left, limit(entry.remaining))
    setText(this.#granted, peer ? '–' : limit(entry.granted))
  }

  #draw(entry: EntryView, { elapsed, scale, ticks }: RowState): void {
    const bars = barsOf(entry, elapsed, scale)
    const verdict = verdictOf(entry.outcome)
    const lines = ticks.slice(1).map((tick) => placeAt(make('i', 'tick'), positionOf(tick, scale)))
    const parts = [
      entry.peer ? [] : part(`granted${isOpen(bars.granted) ? ' open' : ''}`, bars.granted),
      part('reserve', bars.reserve),
      part(`spent ${verdict}${entry.peer ? ' of-peer' : ''}`, bars.spent),
      part('floor', bars.floor),
    ]
    const deadline = scale.deadline === undefined ? [] : [placeAt(make('i', 'deadline'), scale.deadline)]
    this.#lane.replaceChildren(...lines, ...parts.flat(), ...deadline)
  }
}

/** Whether it goes on beyond the right end of the axis. */
function isOpen({ left, width }: Span): boolean {
  return left + width >= 100
}

/** Nothing for an empty part, but for what was spent: what took no time has a place all the same. */
function part(classes: string, span: Span): HTMLElement[] {
  return span.width > 0 || classes.startsWith('spent') ? [place(make('i', classes), span)] : []
}

function axisMarks(
  { deadlineAt }: RequestView,
  { ticks, scale }: { readonly ticks: readonly number[]; readonly scale: Scale },
): HTMLElement[] {
  const { deadline } = scale
  // the deadline's own mark ends at its line, or at the right end: a number under it would be unreadable
  const ends = deadline ?? (deadlineAt === null ? Infinity : 100)
  const room = matchMedia('(max-width: 760px)').matches ? 40 : 26
  const clear = ticks.filter((tick) => {
    const position = positionOf(tick, scale)
    return position < ends - room || position > ends
  })
  const marks = clear.map((tick) => placeAt(make('span', 'mark', duration(tick)), positionOf(tick, scale)))
  if (deadline !== undefined)
    marks.push(placeAt(make('span', 'mark deadline-mark', `deadline ${duration(deadlineAt)}`), deadline))
  else if (deadlineAt !== null)
    marks.push(make('span', 'mark beyond-mark', `deadline ${duration(deadlineAt)} ›`))
  return marks
}

function legend(): HTMLElement {
  const entries = [
    ['granted', 'granted'],
    ['floor', 'floor'],
    ['reserve', 'reserve'],
    ['deadline', 'deadline'],
    ['spent ok', 'ok'],
    ['spent degraded', 'degraded'],
    ['spent late', 'out of time'],
    ['spent failed', 'failed'],
    ['spent refused', 'refused'],
    ['spent left', 'abandoned'],
    ['spent running', 'running'],
  ] as const
  const items = entries.map(([classes, name]) => make('li', '', make('i', `key ${classes}`), name))
  const list = make('ul', 'legend', ...items)
  list.setAttribute('aria-label', 'Legend')
  return list
}

function columnHead(title: string, classes: string): HTMLTableCellElement {
  const head = make('th', classes, title)
  head.scope = 'col'
  return head
}

function indexOf(target: EventTarget | null): number | undefined {
  const row = target instanceof Element ? target.closest('tr[data-index]') : null
  return row instanceof HTMLElement ? Number(row.dataset['index']) : undefined
}
