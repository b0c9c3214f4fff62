import type { RequestView } from '../snapshot.ts'
import { cell, make, place, placeAt, setText, sign } from './dom.ts'
import { duration, limit } from './format.ts'
import { nameOf, type Verdict, verdictOf } from './outcomes.ts'
import { type Fit, positionOf, rowScale, type Scale, spanOf } from './scale.ts'

/** One row of the list, as long as its request can be seen. */
export class RequestRow {
  readonly element: HTMLTableRowElement
  readonly #outcome = make('span', 'label')
  readonly #outcomeCell = cell('outcome')
  readonly #method = cell('method')
  readonly #path = cell('path')
  readonly #status = cell('status')
  readonly #elapsed = make('span')
  readonly #budget = make('span', 'quiet')
  readonly #track = make('div', 'track')
  readonly #used = make('div', 'used')
  #drawn: { readonly request: RequestView; readonly fit: Fit } | undefined
  #verdict: Verdict | undefined

  constructor(id: number) {
    const time = cell('time', this.#elapsed, this.#budget)
    const bars = cell('bars', this.#track)
    bars.setAttribute('aria-hidden', 'true')
    const cells = [this.#outcomeCell, this.#method, this.#path, this.#status, time, bars]
    for (const each of cells) each.setAttribute('role', 'gridcell')
    this.element = make('tr', 'request', ...cells)
    this.element.id = `request-${id}`
    this.element.dataset['id'] = String(id)
    this.element.setAttribute('role', 'row')
  }

  /** Where it stands in the table, and whether it is the selected one. */
  place({ index, selected }: { readonly index: number; readonly selected: boolean }): void {
    setAttribute(this.element, 'aria-rowindex', String(index))
    setAttribute(this.element, 'aria-selected', String(selected))
  }

  update(request: RequestView, { elapsed, fit }: { readonly elapsed: number; readonly fit: Fit }): void {
    setText(this.#elapsed, duration(elapsed))
    const isDrawn = this.#drawn?.request === request && this.#drawn.fit === fit
    if (isDrawn && request.outcome !== null) return
    if (!isDrawn) this.#describe(request)
    const scale = rowScale(request, elapsed, fit)
    // a running request grows; where its own time is the scale, all of it moves
    if (!isDrawn || fit === 'time') this.#draw(request, { elapsed, scale })
    place(this.#used, spanOf(0, elapsed, scale))
    this.#drawn = { request, fit }
  }

  #describe({ outcome, method, path, status, budget }: RequestView): void {
    const verdict = verdictOf(outcome)
    if (verdict !== this.#verdict) {
      this.#outcomeCell.replaceChildren(sign(verdict), this.#outcome)
      if (this.#verdict !== undefined) this.element.classList.remove(this.#verdict)
      this.element.classList.add(verdict)
      this.#verdict = verdict
    }
    setText(this.#outcome, nameOf(outcome))
    setText(this.#method, method)
    setText(this.#path, path)
    this.#path.title = path
    setText(this.#status, status === null ? '–' : String(status))
    setText(this.#budget, ` / ${limit(budget)}`)
  }

  #draw(request: RequestView, { elapsed, scale }: { readonly elapsed: number; readonly scale: Scale }): void {
    const bars = request.bars.map(([start, spent, depth, outcome]) => {
      const bar = make('div', `bar ${verdictOf(outcome)} depth-${depth}`)
      // what runs still is as long as the request is: the bar's end moves with the used part's
      return place(bar, spanOf(start, start + (spent ?? Math.max(0, elapsed - start)), scale))
    })
    const isFlat = request.bars.every(([, , depth]) => depth === 0)
    this.#track.classList.toggle('flat', isFlat)
    const line = scale.deadline === undefined ? [] : [placeAt(make('div', 'deadline'), scale.deadline)]
    const over = positionOf(elapsed, scale) >= 100 ? [make('div', 'beyond', '›')] : []
    this.#track.replaceChildren(this.#used, ...bars, ...line, ...over)
  }
}

function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}
