import fc from 'fast-check'
import { Deadline, type TimeBudgetError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

/** A deadline and what must be true of it, kept by the plainest rules there are. */
export interface Tree {
  readonly deadline: Deadline
  readonly parent: Tree | undefined
  readonly startedAt: number
  readonly endsAt: number
  readonly foreign: AbortController | undefined
  cancelledAt: number | undefined
  settledAt: number | undefined
  /** Whether its signal was asked for while it ran. */
  isHeard: boolean
  readonly aborts: { readonly at: number; readonly reason: unknown }[]
}

/** Which ancestor's end, or which of its own, is the end of a deadline. */
export interface End {
  readonly at: number
  readonly of: Tree
  readonly by: 'time' | 'cancel'
}

/** A number picks the deadline it concerns, among those there are by then. */
export type Step =
  | { readonly kind: 'root'; readonly budget: number; readonly isForeign: boolean }
  | {
      readonly kind: 'child'
      readonly of: number
      readonly timeout: number | undefined
      readonly reserve: number | undefined
    }
  | { readonly kind: 'listen'; readonly to: number; readonly reaction: Reaction | undefined }
  | { readonly kind: 'advance' | 'block'; readonly by: number }
  | { readonly kind: 'abort'; readonly which: number }
  | Reaction

/** What a listener of a signal may do while others have yet to hear of the same end. */
export type Reaction = { readonly kind: 'cancel' | 'settle' | 'derive'; readonly which: number }

const index = fc.nat(40)
const span = fc.oneof(
  fc.integer({ min: 0, max: 60 }),
  fc.integer({ min: 0, max: 20_000 }),
  fc.constant(Infinity),
)
const maybe = fc.option(fc.oneof(fc.nat(60), fc.nat(20_000)), { nil: undefined })
const reaction: fc.Arbitrary<Reaction> = fc.record({
  kind: fc.constantFrom('cancel', 'settle', 'derive'),
  which: index,
})

/** Lives of a few trees of deadlines: derived, listened to, cancelled, settled, in time and with a blocked event loop. */
export const lives: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('root'), budget: span, isForeign: fc.boolean() }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('child'), of: index, timeout: maybe, reserve: maybe }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('listen'),
        to: index,
        reaction: fc.option(reaction, { nil: undefined }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('advance', 'block'), by: fc.nat(40) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('advance', 'block'), by: fc.nat(20_000) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort'), which: index }) },
    { weight: 2, arbitrary: reaction },
  ),
  { minLength: 4, maxLength: 60 },
)

/** Plays lives on a manual clock and remembers what happened. */
export class Forest {
  readonly clock: ManualClock
  readonly trees: Tree[] = []

  constructor(clock: ManualClock = new ManualClock()) {
    this.clock = clock
  }

  play(step: Step): void {
    switch (step.kind) {
      case 'root':
        return this.#plant(step)
      case 'child':
        return this.#derive(this.#pick(step.of), step)
      case 'listen':
        return this.#listen(this.#pick(step.to), step.reaction)
      case 'advance':
        return this.clock.advance(step.by)
      case 'block':
        return this.clock.block(step.by)
      case 'abort':
        return this.#abort(this.#pick(step.which))
      default:
        return this.#react(step)
    }
  }

  /** The end as it is by now, found without any of the library's means; `undefined` while there is none. */
  endOf(tree: Tree): End | undefined {
    const inherited = tree.parent === undefined ? undefined : this.endOf(tree.parent)
    const own = this.#ownEndOf(tree)
    if (inherited === undefined || own === undefined) return inherited ?? own
    return inherited.at <= own.at ? inherited : own
  }

  /** The ends that may rightly count: more than one where time was up in the very millisecond of a cancellation. */
  causesOf(tree: Tree): readonly End[] {
    const inherited = tree.parent === undefined ? [] : this.causesOf(tree.parent)
    const own = this.#ownEndOf(tree)
    const [earliest] = inherited
    if (own === undefined) return inherited
    if (earliest === undefined || own.at < earliest.at) return [own]
    return own.at === earliest.at && inherited.some(({ by }) => by === 'cancel')
      ? [...inherited, own]
      : inherited
  }

  #ownEndOf(tree: Tree): End | undefined {
    if (tree.cancelledAt !== undefined) return { at: tree.cancelledAt, of: tree, by: 'cancel' }
    if (this.clock.now() < tree.endsAt) return undefined
    return { at: Math.max(tree.endsAt, tree.startedAt), of: tree, by: 'time' }
  }

  #pick(number: number): Tree | undefined {
    return this.trees[number % this.trees.length]
  }

  #plant({ budget, isForeign }: { readonly budget: number; readonly isForeign: boolean }): void {
    const foreign = isForeign ? new AbortController() : undefined
    const deadline = Deadline.after(budget, { clock: this.clock, signal: foreign?.signal })
    const startedAt = this.clock.now()
    this.#add({ deadline, parent: undefined, startedAt, endsAt: startedAt + budget, foreign })
  }

  #derive(
    parent: Tree | undefined,
    options: { readonly timeout?: number | undefined; readonly reserve?: number | undefined },
  ): void {
    if (parent === undefined) return
    const deadline = parent.deadline.child({ timeout: options.timeout, reserve: options.reserve })
    const startedAt = this.clock.now()
    const endsAt = Math.min(startedAt + (options.timeout ?? Infinity), parent.endsAt - (options.reserve ?? 0))
    this.#add({ deadline, parent, startedAt, endsAt, foreign: undefined })
  }

  #add(tree: Pick<Tree, 'deadline' | 'parent' | 'startedAt' | 'endsAt' | 'foreign'>): Tree {
    const added = { ...tree, cancelledAt: undefined, settledAt: undefined, isHeard: false, aborts: [] }
    this.trees.push(added)
    return added
  }

  #listen(tree: Tree | undefined, reaction: Reaction | undefined): void {
    if (tree === undefined || tree.settledAt !== undefined || this.endOf(tree) !== undefined) return
    tree.isHeard = true
    const { signal } = tree.deadline
    signal.addEventListener('abort', () => {
      tree.aborts.push({ at: this.clock.now(), reason: signal.reason })
      if (reaction !== undefined) this.#react(reaction)
    })
  }

  #react({ kind, which }: Reaction): void {
    const tree = this.#pick(which)
    if (tree === undefined) return
    if (kind === 'derive') return this.#deriveAndListen(tree)
    if (kind === 'settle') {
      tree.settledAt ??= this.clock.now()
      tree.deadline.settle()
      return
    }
    this.#noteCancel(tree)
    tree.deadline.cancel(new Error(`cancelled ${which}`))
  }

  #deriveAndListen(parent: Tree): void {
    this.#derive(parent, { timeout: 5 })
    this.#listen(this.trees.at(-1), undefined)
  }

  #abort(tree: Tree | undefined): void {
    if (tree?.foreign === undefined || tree.foreign.signal.aborted) return
    this.#noteCancel(tree)
    tree.foreign.abort(new Error('aborted from outside'))
  }

  #noteCancel(tree: Tree): void {
    if (tree.settledAt !== undefined || this.endOf(tree) !== undefined) return
    tree.cancelledAt = this.clock.now()
  }
}

/** The reason a deadline has, which it must have by now. */
export function reasonOf(tree: Tree): TimeBudgetError {
  const { reason } = tree.deadline
  if (reason === undefined) throw new Error('the deadline has ended without a reason')
  return reason
}
