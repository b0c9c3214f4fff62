import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { longest, rankOf } from './support/longest-first.ts'

test('what is known to take long starts first, then the rest', () => {
  const paths = ['test/requirements.test.ts', 'test/faults/clocks.test.ts', 'test/packed/packed.test.ts']
  const inOrder = paths.toSorted((one, other) => rankOf(one) - rankOf(other))
  expect(inOrder).toEqual(paths.toReversed())
})

test('all that is known to take long is there', () => {
  expect(longest.filter((path) => !existsSync(new URL(`../${path}`, import.meta.url)))).toEqual([])
})
