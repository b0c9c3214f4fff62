import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Line, Place } from '../src/queue-line.ts'

class Standing extends Place<Standing> {}

type Step = { readonly join: { readonly rank: number; readonly work: number } } | { readonly leave: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    join: fc.record({ rank: fc.integer({ min: 0, max: 20 }), work: fc.integer({ min: 0, max: 9 }) }),
  }),
  fc.record({ leave: fc.nat(100) }),
)

test('a line stands in the order of ranks, then of arrival, and knows the work before every place, whoever joins and leaves', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const line = new Line<Standing>()
      let model: Standing[] = []
      for (const [arrival, each] of steps.entries()) {
        if ('join' in each) {
          const place = new Standing({ ...each.join, arrival })
          line.join(place)
          model.push(place)
          model.sort((one, other) => one.rank - other.rank || one.arrival - other.arrival)
        } else if (model.length > 0) {
          const leaving = model[each.leave % model.length]
          if (leaving === undefined) continue
          line.leave(leaving)
          model = model.filter((place) => place !== leaving)
        }
        expect(line.size).toBe(model.length)
        expect(line.first).toBe(model[0])
        expect(line.last).toBe(model.at(-1))
        expect(line.work).toBe(model.reduce((sum, { work }) => sum + work, 0))
      }
      let before = 0
      for (const place of model) {
        expect(line.workBefore(place)).toBe(before)
        before += place.work
      }
    }),
    { seed: 1 },
  )
})

test('a line of 20,000 who come in order is no deeper than one of those who come at random', () => {
  const line = new Line<Standing>()
  const places = Array.from(
    { length: 20_000 },
    (_, arrival) => new Standing({ rank: arrival, arrival, work: 1 }),
  )
  for (const place of places) line.join(place)
  const heights = new Map<Standing | undefined, number>([[undefined, 0]])
  const heightOf = (place: Standing | undefined): number => {
    const height = heights.get(place) ?? 1 + Math.max(heightOf(place?.earlier), heightOf(place?.later))
    heights.set(place, height)
    return height
  }
  expect(Math.max(...places.map(heightOf))).toBeLessThan(80) // about twice what a treap of that size has as a rule
})
