/** The few looks that the demo uses. */
export type Look = 'bold' | 'dim' | 'green' | 'red' | 'cyan'

/** Gives text a look, where that is wanted. */
export type Paint = (look: Look, text: string) => string

const codes: Readonly<Record<Look, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  red: [31, 39],
  cyan: [36, 39],
}

/** Text without any look. */
export const plain: Paint = (_, text) => text

const ansi: Paint = (look, text) => `\u001b[${codes[look][0]}m${text}\u001b[${codes[look][1]}m`

/** What a terminal needs of a stream. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

// A pipe gets whole lines, and few of them.
const pipedProgressEvery = 4000

/** Writes lines, and a progress line that a real terminal overwrites and a pipe gets every few seconds. */
export class Terminal {
  readonly paint: Paint
  readonly #output: Output
  readonly #live: boolean
  #progressAt = -Infinity

  /** `NO_COLOR`, when set and not empty, means no colours, as no-color.org has it. */
  constructor(output: Output, environment: Readonly<Record<string, string | undefined>>) {
    this.#output = output
    this.#live = output.isTTY === true && environment['TERM'] !== 'dumb'
    this.paint = this.#live && !environment['NO_COLOR'] ? ansi : plain
  }

  /** Columns there are; 100 where nobody knows. */
  get width(): number {
    return this.#output.columns ?? 100
  }

  line(text = ''): void {
    this.#output.write(this.#live ? `\r\u001b[K${text}\n` : `${text}\n`)
  }

  progress(text: string): void {
    if (this.#live) {
      this.#output.write(`\r\u001b[K${text.slice(0, this.width - 1)}`)
    } else if (performance.now() - this.#progressAt > pipedProgressEvery) {
      this.#progressAt = performance.now()
      this.#output.write(`${text}\n`)
    }
  }
}
