import type { Measure } from './sane-metrics.ts'

/** Where names beyond the limit are counted. */
export const otherName = 'other'

/** A name as long as this is nobody's operation, but somebody's input. */
const longest = 128

/** Lets so many different names through; all others become `other`, so that no stranger makes series without end. */
export class BoundedNames {
  readonly #most: number
  readonly #known = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  of(name: string): string {
    if (this.#known.has(name)) return name
    if (this.#known.size >= this.#most || name.length > longest) return otherName
    this.#known.add(name)
    return name
  }
}

/** What a counter by name and word is made of. */
export interface NamedCounterShape {
  readonly count: Measure
  readonly names: BoundedNames
  readonly nameLabel: string
  readonly wordLabel: string
  /** All words there are: each of a name's series is there, at 0, from the name's first sight on. */
  readonly words: readonly string[]
}

/** A counter by somebody's name and one of our words. */
export class NamedCounter {
  readonly #shape: NamedCounterShape
  readonly #begun = new Set<string>()

  constructor(shape: NamedCounterShape) {
    this.#shape = shape
  }

  add(name: string, word: string): void {
    const { count, names, nameLabel, wordLabel, words } = this.#shape
    const label = names.of(name)
    if (!this.#begun.has(label)) {
      this.#begun.add(label)
      for (const each of words) count(0, { [nameLabel]: label, [wordLabel]: each })
    }
    count(1, { [nameLabel]: label, [wordLabel]: word })
  }
}
