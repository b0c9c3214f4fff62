import type { ChatEnd } from '@timebudget/sse/browser'
import { part } from './parts.ts'
import { judge, type Mark } from './verdict.ts'
import { words } from './words.ts'

/** One question, and what has become of it. */
export class Turn {
  readonly element: HTMLElement
  readonly question: string
  readonly #text: HTMLElement
  readonly #doing: HTMLElement
  readonly #notice: HTMLElement
  readonly #marks: HTMLElement

  constructor(question: string, { onRetry, onKeep }: { onRetry(turn: Turn): void; onKeep(): void }) {
    const copy = part(document, '#turn', HTMLTemplateElement).content.cloneNode(true) as DocumentFragment
    this.question = question
    this.element = part(copy, 'article', HTMLElement)
    this.#text = part(copy, '.text', HTMLElement)
    this.#doing = part(copy, '.doing', HTMLElement)
    this.#notice = part(copy, '.notice p', HTMLElement)
    this.#marks = part(copy, '.marks', HTMLElement)
    part(copy, '.question', HTMLElement).textContent = question
    part(copy, '.retry', HTMLButtonElement).onclick = () => onRetry(this)
    part(copy, '.keep', HTMLButtonElement).onclick = () => {
      this.keep()
      onKeep()
    }
  }

  begin(): void {
    this.#text.replaceChildren()
    this.#notice.textContent = ''
    this.#marks.replaceChildren()
    // read out once, as a whole, and not word by word
    this.#text.ariaBusy = 'true'
    this.think()
  }

  think(): void {
    this.#doing.textContent = words.thinking
    this.#state = this.#text.hasChildNodes() ? 'streaming' : 'thinking'
  }

  add(piece: string): void {
    this.#text.append(piece)
    this.#state = 'streaming'
  }

  reconnect(): void {
    this.#doing.textContent = words.reconnecting
    this.#state = 'reconnecting'
  }

  /** Returns what to announce. */
  end(end: ChatEnd): string {
    const { state, notice, marks } = judge(end)
    this.#text.normalize()
    this.#text.ariaBusy = 'false'
    this.#notice.textContent = notice
    this.#marks.replaceChildren(...marks.map(markElement))
    this.#state = state
    return notice === '' ? words.complete : notice
  }

  /** The text stands as the answer, marked as what it is. */
  keep(): void {
    if (this.#state === 'interrupted') this.#state = 'kept'
  }

  get #state(): string | undefined {
    return this.element.dataset['state']
  }

  set #state(state: string) {
    this.element.dataset['state'] = state
  }
}

function markElement({ kind, text }: Mark): HTMLElement {
  const mark = document.createElement('span')
  mark.textContent = text
  mark.className = kind
  return mark
}
