import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type End, Forest, lives, reasonOf } from '../support/forest.ts'

const runs = { numRuns: 1_000 }

/** Checks the whole forest after every step of many lives. */
function holdsAlways(check: (forest: Forest) => void): void {
  fc.assert(
    fc.property(lives, (steps) => {
      const forest = new Forest()
      for (const step of steps) {
        forest.play(step)
        check(forest)
      }
    }),
    runs,
  )
}

/** Checks the whole forest once at the end of many lives. */
function holdsAtLast(check: (forest: Forest) => void): void {
  fc.assert(
    fc.property(lives, (steps) => {
      const forest = new Forest()
      for (const step of steps) forest.play(step)
      check(forest)
    }),
    runs,
  )
}

function codeOf({ by, of }: End): string {
  if (by === 'cancel') return 'CANCELLED'
  return of.parent === undefined ? 'DEADLINE_EXCEEDED' : 'OPERATION_TIMEOUT'
}

test('law 1: a child never outlives its parent, however the two were derived, cancelled or settled', () => {
  holdsAlways(({ trees }) => {
    for (const { deadline, parent } of trees) {
      if (parent === undefined) continue
      expect(deadline.remaining()).toBeLessThanOrEqual(parent.deadline.remaining())
      expect(deadline.expiresAt).toBeLessThanOrEqual(parent.deadline.expiresAt)
      if (parent.deadline.expired) expect(deadline.expired).toBe(true)
    }
  })
})

test('law 2: a deadline says that it has ended exactly when it has, whether or not its timer has run', () => {
  holdsAlways((forest) => {
    for (const tree of forest.trees) {
      const end = forest.endOf(tree)
      expect(tree.deadline.expired).toBe(end !== undefined)
      expect(tree.deadline.remaining()).toBe(end === undefined ? tree.endsAt - forest.clock.now() : 0)
    }
  })
})

test('law 2: no signal aborts before its end, or twice, or once its work is over', () => {
  holdsAtLast((forest) => {
    for (const tree of forest.trees) {
      const end = forest.endOf(tree)
      expect(new Set(tree.aborts.map(({ reason }) => reason)).size).toBeLessThanOrEqual(1)
      for (const { at } of tree.aborts) {
        expect(at).toBeGreaterThanOrEqual(end?.at ?? Infinity)
        expect(at).toBeLessThanOrEqual(tree.settledAt ?? Infinity)
      }
    }
  })
})

test('law 2: every signal aborts within the millisecond after its end, even under a parent that has settled', () => {
  holdsAlways((forest) => {
    forest.clock.advance(1)
    for (const tree of forest.trees) {
      if (!tree.isHeard || tree.settledAt !== undefined) continue
      expect(tree.deadline.signal.aborted).toBe(forest.endOf(tree) !== undefined)
    }
  })
})

test('law 2: with an event loop that keeps up every signal aborts at the very moment of its end', () => {
  fc.assert(
    fc.property(lives, (steps) => {
      const forest = new Forest()
      for (const step of steps) forest.play(step.kind === 'block' ? { ...step, kind: 'advance' } : step)
      for (const tree of forest.trees) {
        for (const { at } of tree.aborts) expect(at).toBe(forest.endOf(tree)?.at)
      }
    }),
    runs,
  )
})

test('law 3: the first cause wins and is the same object here, in the signal and in every child', () => {
  holdsAlways((forest) => {
    for (const tree of forest.trees) {
      const causes = forest.causesOf(tree)
      if (causes.length === 0) {
        expect(tree.deadline.reason).toBeUndefined()
        continue
      }
      const reason = reasonOf(tree)
      expect(causes.map(({ of }) => reasonOf(of))).toContain(reason)
      expect(causes.map(codeOf)).toContain(reason.code)
      for (const abort of tree.aborts) expect(abort.reason).toBe(reason)
      if (tree.deadline.signal.aborted) expect(tree.deadline.signal.reason).toBe(reason)
    }
  })
})

test('law 4: however many deadlines there are, one wake-up is pending, and none once all are settled', () => {
  fc.assert(
    fc.property(lives, (steps) => {
      const forest = new Forest()
      for (const step of steps) {
        forest.play(step)
        expect(forest.clock.pendingTimers).toBeLessThanOrEqual(1)
      }
      for (const { deadline } of forest.trees) deadline.settle()
      const heard = forest.trees.map(({ aborts }) => aborts.length)
      expect(forest.clock.pendingTimers).toBeLessThanOrEqual(1)
      forest.clock.advance(1e9)
      expect(forest.clock.pendingTimers).toBe(0)
      expect(forest.trees.map(({ aborts }) => aborts.length)).toEqual(heard)
    }),
    runs,
  )
})
