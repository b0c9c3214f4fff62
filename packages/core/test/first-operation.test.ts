import { expect, test } from 'vitest'
import { currentDeadline, Deadline, operation } from '@timebudget/core'

// In a file, and so a process, of its own: what nobody has used yet costs nothing, and must work all the same.
test('the first operation of a process is already the one that those within it stand under', async () => {
  expect(currentDeadline()).toBeUndefined()
  const paths = await operation('outer', { timeout: '1m' }, async (outer) => {
    await Promise.resolve()
    expect(currentDeadline()).toBe(outer.deadline)
    await operation('inner', {}, (inner) => expect(inner.timeout).toBeLessThanOrEqual(60_000))
    return outer.deadline.ledger.entries.map(({ path }) => path)
  })
  expect(paths).toEqual(['outer', 'outer.inner'])
  const deadline = Deadline.after('1m')
  await operation('next', { deadline }, (scope) => expect(currentDeadline()).toBe(scope.deadline))
})
