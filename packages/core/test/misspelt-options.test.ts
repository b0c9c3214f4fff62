import { expect, test } from 'vitest'
import { Deadline, operation, startOperation } from '@timebudget/core'

// what somebody writes without the types
const misspelt: object = { timeOut: '2s' }

test('an operation whose option is misspelt fails before its work begins, and says which options there are', async () => {
  let begun = false
  const failing = operation('retrieve', misspelt, () => (begun = true))
  await expect(failing).rejects.toThrow(/^timeOut: no such option; there are timeout, floor, reserve/)
  await expect(failing).rejects.toBeInstanceOf(TypeError)
  expect(begun).toBe(false)
  expect(() => startOperation('retrieve', misspelt)).toThrow('timeOut: no such option')
})

test('a refused operation leaves nothing in the ledger', () => {
  const deadline = Deadline.after('1s')
  expect(() => startOperation('retrieve', { deadline, ...misspelt })).toThrow(TypeError)
  expect(deadline.ledger.entries).toEqual([])
})

test('an operation that is given its work in place of its options says so', async () => {
  const work: never = (() => 'done') as never
  await expect(operation('retrieve', work, work)).rejects.toThrow(/^options: expected an object with timeout/)
})

test('a deadline whose option is misspelt is not made', () => {
  expect(() => Deadline.after('1s', misspelt)).toThrow('timeOut: no such option; there are parent, signal')
  expect(() => Deadline.at(0, misspelt)).toThrow('timeOut: no such option; there are parent, signal')
  expect(() => Deadline.after('1s').child(misspelt)).toThrow(
    'timeOut: no such option; there are timeout, reserve, label',
  )
})

test('what a library puts on Object.prototype is no misspelt option of anybody', async () => {
  Object.defineProperty(Object.prototype, 'putThere', { value: 1, enumerable: true, configurable: true })
  let answer: Promise<string>
  let budget: number
  try {
    answer = operation('retrieve', { timeout: '1s' }, () => 'done')
    budget = Deadline.after('1s', {}).budget
  } finally {
    Reflect.deleteProperty(Object.prototype, 'putThere')
  }
  await expect(answer).resolves.toBe('done')
  expect(budget).toBe(1_000)
})
