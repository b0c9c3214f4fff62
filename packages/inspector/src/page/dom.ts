import type { Span } from './scale.ts'
import type { Verdict } from './outcomes.ts'

type Child = Node | string

/** An element with classes and children; texts become text, never markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  classes = '',
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  if (classes !== '') element.className = classes
  element.append(...children)
  return element
}

/** The element of the page's own markup. */
export function find<T extends HTMLElement>(id: string, kind: new () => T): T {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`)
  return element
}

/** Sets a text that may have changed; an unchanged one costs no layout. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text
}

/** A cell, or several, of a table's row. */
export function cell(classes: string, ...children: readonly Child[]): HTMLTableCellElement {
  return make('td', classes, ...children)
}

/** Lays an element along an axis. */
export function place(element: HTMLElement, { left, width }: Span): HTMLElement {
  element.style.left = `${left}%`
  element.style.width = `${width}%`
  return element
}

export function placeAt(element: HTMLElement, left: number): HTMLElement {
  element.style.left = `${left}%`
  return element
}

const signs: Readonly<Record<Verdict, string>> = {
  running: 'M8 2a6 6 0 1 1-5.2 3',
  ok: 'M3 8.5 6.5 12 13 4.5',
  degraded: 'M8 3v10M3.5 8.5 8 13l4.5-4.5',
  late: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3.5l2.5 1.5',
  failed: 'M4 4l8 8M12 4l-8 8',
  refused: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM3.8 3.8l8.4 8.4',
  left: 'M2 8h9M8 4.5 11.5 8 8 11.5M14 3v10',
}

/** The sign of a verdict: colour alone would not tell those who do not see it. */
export function sign(verdict: Verdict): SVGSVGElement {
  const drawing = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  drawing.setAttribute('viewBox', '0 0 16 16')
  drawing.setAttribute('aria-hidden', 'true')
  drawing.setAttribute('class', `sign ${verdict}`)
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', signs[verdict])
  drawing.append(path)
  return drawing
}
