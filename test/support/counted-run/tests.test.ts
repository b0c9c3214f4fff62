import { expect, test } from 'vitest'

test('passes', () => expect(1).toBe(1))
test('passes too', () => expect(2).toBe(2))
test('fails', () => expect(1).toBe(2))
test.skip('is skipped', () => expect(1).toBe(2))
test('skips itself', ({ skip }) => skip('for a reason'))
test.todo('is still to be written')
