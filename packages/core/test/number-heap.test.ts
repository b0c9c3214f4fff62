import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NumberHeap } from '../src/number-heap.ts'

/** Both zeros are the same moment, in whatever order they come. */
const withoutMinusZero = (value: number): number => value + 0

test('a heap gives back what was put in, least first, whatever the order of putting and taking', () => {
  const moment = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.double({ noNaN: true }).map(withoutMinusZero))
  fc.assert(
    fc.property(fc.array(fc.option(moment), { maxLength: 200 }), (steps) => {
      const heap = new NumberHeap()
      const model: number[] = []
      for (const step of steps) {
        if (step === null) {
          expect(heap.pop()).toBe(model.shift())
        } else {
          heap.push(step)
          model.push(step)
          model.sort((a, b) => a - b)
        }
        expect(heap.peek()).toBe(model[0])
      }
      expect(model.map(() => heap.pop())).toEqual(model)
      expect(heap.pop()).toBeUndefined()
      expect(heap.peek()).toBeUndefined()
    }),
    { numRuns: 2_000 },
  )
})
