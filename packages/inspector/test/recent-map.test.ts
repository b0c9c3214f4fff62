import { expect, test } from 'vitest'
import { RecentMap } from '../src/books/recent-map.ts'

test('what is asked for again and again stays, whatever else comes and goes', () => {
  const map = new RecentMap<string, string>(10)
  const often = ['retrieve', 'rerank', 'generate']
  for (const name of often) map.of(name, () => name)
  for (let index = 0; index < 1_000; index += 1) {
    map.of(`once ${index}`, () => 'once')
    for (const name of often) expect(map.of(name, () => 'made anew')).toBe(name)
  }
  expect(map.values()).toHaveLength(10)
  expect(map.values()).toEqual(expect.arrayContaining(often))
})

test('where all were asked for, a new one takes the place of the one that has been there the longest', () => {
  const map = new RecentMap<number, number>(3)
  for (const key of [1, 2, 3, 1, 2, 3, 4]) map.of(key, () => key)
  expect(map.values().toSorted((one, other) => one - other)).toEqual([2, 3, 4])
})
