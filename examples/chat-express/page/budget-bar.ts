import { words } from './words.ts'

/** How often what is left is drawn, in milliseconds. */
const pace = 250

/** Shows what is left of an answer's time. */
export class BudgetBar {
  readonly #bar: HTMLElement
  readonly #label: HTMLElement
  #budget = 0
  #endsAt = 0
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(bar: HTMLElement, label: HTMLElement) {
    this.#bar = bar
    this.#label = label
  }

  start(budget: number): void {
    this.#budget = budget
    this.#endsAt = performance.now() + budget
    this.#bar.ariaValueMax = String(Math.round(budget / 1_000))
    this.#bar.hidden = false
    this.#timer = setInterval(() => this.#draw(), pace)
    this.#draw()
  }

  /** The server's word on what is left, which counts where it is less. */
  correct(remaining: number): void {
    this.#endsAt = Math.min(this.#endsAt, performance.now() + remaining)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#bar.hidden = true
    this.#label.textContent = ''
  }

  #draw(): void {
    const left = Math.max(0, this.#endsAt - performance.now())
    const seconds = Math.ceil(left / 1_000)
    const text = words.timeLeft(seconds)
    this.#bar.style.setProperty('--left', String(left / this.#budget))
    this.#bar.classList.toggle('scarce', left < this.#budget / 4)
    this.#bar.ariaValueNow = String(seconds)
    this.#bar.ariaValueText = text
    this.#label.textContent = text
  }
}
