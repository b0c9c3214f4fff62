import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeAttempt, encodeAttempt } from '@timebudget/core/wire'

test('a first attempt says nothing, a later one its number', () => {
  expect(encodeAttempt(1)).toEqual({})
  expect(encodeAttempt(3)).toEqual({ 'x-request-attempt': '3' })
})

test.each([
  { value: undefined, attempt: 1 },
  { value: '2', attempt: 2 },
  { value: ' 4 ', attempt: 4 },
  { value: '2, 5, 3', attempt: 5 },
  { value: ['3', '2'], attempt: 3 },
  { value: '0', attempt: 1 },
  { value: '', attempt: 1 },
  { value: '-2', attempt: 1 },
  { value: '+2', attempt: 1 },
  { value: '2.5', attempt: 1 },
  { value: '1e2', attempt: 1 },
  { value: '9999', attempt: 1 },
  { value: '99999999', attempt: 1 },
  { value: 'second', attempt: 1 },
])('an attempt given as $value is read as $attempt', ({ value, attempt }) => {
  expect(decodeAttempt({ 'x-request-attempt': value })).toBe(attempt)
})

test('an attempt on a polluted prototype is none', () => {
  expect(decodeAttempt(Object.create({ 'x-request-attempt': '7' }) as Record<string, string>)).toBe(1)
})

test('law 11: what is no text is passed over, and so is what follows the first 64 values', () => {
  const values: unknown[] = [7, null, undefined, {}, Symbol('9'), '3']
  expect(decodeAttempt({ 'x-request-attempt': values as string[] })).toBe(3)
  expect(decodeAttempt({ 'x-request-attempt': 7 as unknown as string })).toBe(1)
  expect(decodeAttempt({ 'x-request-attempt': [...Array<string>(64).fill('2'), '9'] })).toBe(2)
})

test('whatever a peer sends comes to a number of attempts', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.array(fc.string())), (value) => {
      const attempt = decodeAttempt({ 'x-request-attempt': value })
      expect(Number.isInteger(attempt) && attempt >= 1 && attempt <= 1000).toBe(true)
    }),
  )
})
