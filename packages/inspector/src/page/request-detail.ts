import type { EntryView, WholeRequest } from '../snapshot.ts'
import { find, make, setText, sign } from './dom.ts'
import { elapsedOf } from './filter.ts'
import { count, duration, limit } from './format.ts'
import { nameOf, verdictOf } from './outcomes.ts'
import { type Fit, isShortOf } from './scale.ts'
import { Waterfall } from './waterfall.ts'

/** The selected request: its figures, its waterfall, and the figures of the operation pointed at. */
export class RequestDetail {
  readonly #panel = find('detail', HTMLElement)
  readonly #title = make('h2')
  readonly #figures = make('dl', 'figures')
  readonly #fit = make('button', 'plain')
  readonly #note = make('p', 'note')
  readonly #operation = make('div', 'pointed-at')
  readonly #waterfall: Waterfall
  #shown: WholeRequest | undefined
  #chosenFit: Fit | undefined
  #pointed: number | undefined

  constructor({ close, redraw }: { close(): void; redraw(): void }) {
    const closer = make('button', 'plain close', 'Close')
    closer.addEventListener('click', close)
    this.#fit.addEventListener('click', () => {
      this.#chosenFit = this.#fitNow(this.#shown, 0) === 'budget' ? 'time' : 'budget'
      redraw()
    })
    this.#waterfall = new Waterfall((index) => {
      this.#pointed = index
      redraw()
    })
    const head = make('div', 'detail-head', this.#title, this.#fit, closer)
    this.#operation.setAttribute('role', 'status')
    this.#panel.append(head, this.#figures, this.#note, this.#waterfall.element, this.#operation)
    this.#panel.addEventListener('keydown', ({ key }) => {
      if (key === 'Escape') close()
    })
  }

  render(request: WholeRequest | undefined, now: number): void {
    this.#panel.hidden = request === undefined
    if (request === undefined) {
      this.#shown = undefined
      return
    }
    const elapsed = elapsedOf(request, now)
    if (request.id !== this.#shown?.id) {
      this.#pointed = undefined
      this.#chosenFit = undefined
    }
    // once it has ended nothing of it moves
    const fit = this.#fitNow(request, elapsed)
    if (request !== this.#shown || request.outcome === null) this.#describe(request, elapsed)
    setText(this.#fit, fit === 'budget' ? 'Show the time used' : 'Show the whole budget')
    this.#shown = request
    this.#waterfall.render(request, { elapsed, fit, pointed: this.#pointed })
    this.#describeOperation(request.entries[this.#pointed ?? -1])
  }

  #fitNow(request: WholeRequest | undefined, elapsed: number): Fit {
    if (request === undefined) return 'budget'
    return (
      this.#chosenFit ??
      (isShortOf(request, elapsedOf(request, request.startedAt + elapsed)) ? 'time' : 'budget')
    )
  }

  #describe(request: WholeRequest, elapsed: number): void {
    const { outcome, method, path, status, source, clamped, attempt, overrun, goneBy, dropped } = request
    this.#title.replaceChildren(sign(verdictOf(outcome)), make('span', '', `${method} ${path}`))
    const left = request.deadlineAt === null ? null : request.deadlineAt - elapsed
    const figures: [string, string][] = [
      ['outcome', nameOf(outcome)],
      ['status', status === null ? '–' : String(status)],
      ['elapsed', duration(elapsed)],
      ['budget', limit(request.budget)],
      [left !== null && left < 0 ? 'over by' : 'left', left === null ? 'no limit' : duration(Math.abs(left))],
      ['budget from', clamped ? `${source}, clamped to the maximum` : source],
      ['started', new Date(request.startedEpoch).toLocaleTimeString()],
    ]
    if (attempt > 1) figures.push(['attempt', String(attempt)])
    if (overrun !== null && overrun > 0) figures.push(['ended late by', duration(overrun)])
    if (goneBy !== null) figures.push(['client left by', goneBy.replaceAll('_', ' ')])
    listFigures(this.#figures, figures)
    setText(this.#note, dropped > 0 ? `${count(dropped)} more operations are not shown.` : '')
    this.#note.hidden = dropped === 0
  }

  #describeOperation(entry: EntryView | undefined): void {
    if (entry === undefined) {
      const hint = 'Point at an operation, or choose it, for its figures.'
      if (this.#operation.firstElementChild?.textContent !== hint)
        this.#operation.replaceChildren(make('p', 'quiet', hint))
      return
    }
    const figures: [string, string][] = [
      ['outcome', nameOf(entry.outcome)],
      ['started at', duration(entry.start)],
      ['spent', entry.spent === null ? 'not told' : duration(entry.spent)],
      ['left at its start', limit(entry.remaining)],
    ]
    if (entry.peer) figures.push(['told by', 'another service'])
    else {
      figures.push(
        ['granted', limit(entry.granted)],
        ['floor', entry.floor > 0 ? duration(entry.floor) : 'none'],
        ['reserve', entry.reserve > 0 ? duration(entry.reserve) : 'none'],
      )
    }
    if (entry.code !== null) figures.push(['failed with', entry.code])
    const list = make('dl', 'figures')
    listFigures(list, figures)
    this.#operation.replaceChildren(make('h3', '', entry.name), list)
  }
}

function listFigures(list: HTMLDListElement, figures: readonly (readonly [string, string])[]): void {
  const shown = [...list.children]
  if (shown.length === figures.length && figures.every(([name], index) => nameIn(shown[index]) === name)) {
    for (const [index, [, value]] of figures.entries()) {
      const last = shown[index]?.lastElementChild
      if (last) setText(last, value)
    }
    return
  }
  list.replaceChildren(
    ...figures.map(([name, value]) => make('div', '', make('dt', '', name), make('dd', '', value))),
  )
}

function nameIn(pair: Element | undefined): string | null | undefined {
  return pair?.firstElementChild?.textContent
}
