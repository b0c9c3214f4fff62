import { Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { wrapFetch } from '../src/fetch.ts'

test('a fetch that requires a deadline refuses a call without one before any I/O, and makes one that has it', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const strict = wrapFetch(undefined, { requireDeadline: true })
  await expect(strict(upstream.url)).rejects.toThrow(/^requireDeadline: .* no deadline$/)
  expect(upstream.requests).toHaveLength(0)
  using deadline = Deadline.after('5s')
  const answer = await runWithDeadline(deadline, () => strict(upstream.url))
  expect(await answer.text()).toBe('done')
})
