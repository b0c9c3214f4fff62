import { expect } from 'vitest'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { causesOf, codesOf, failureOf, onlyEntry, underDeadline } from '../support/calls.ts'
import type { Lines } from './any-client.ts'

/** How the deadline bears on a call. */
export const deadlineLines: Lines = {
  'its upstream is told what is left': async (client, context) => {
    await using bench = await client.bench('answers', {}, context)
    await underDeadline(5_000, async (deadline) => {
      await bench.call()
      expect(bench.told()).toBeGreaterThan(1_000)
      // two clocks of whole milliseconds
      expect(bench.told()).toBeLessThanOrEqual(5_002)
      expect(onlyEntry(deadline)).toMatchObject({ name: client.operation, outcome: 'ok' })
    })
  },

  'without a deadline and a timeout it is the library, untouched': async (client, context) => {
    await using bench = await client.bench('answers', { floor: 60_000 }, context)
    expect(await bench.call()).toEqual(await bench.bare())
    await bench.call()
    expect(bench.told()).toBeUndefined()
  },

  'below its floor, and under a deadline that has ended, nothing is opened or written': async (
    client,
    context,
  ) => {
    await using bench = await client.bench('answers', { floor: 600 }, context)
    const traffic = bench.traffic()
    await underDeadline(500, async (deadline) => {
      expect(codesOf(await failureOf(bench.call()))).toContain('BUDGET_TOO_SMALL')
      expect(onlyEntry(deadline)).toMatchObject({ outcome: 'short_circuited', floor: 600 })
    })
    const past = Deadline.at(Date.now() - 1_000)
    const failure = await failureOf(runWithDeadline(past, bench.call))
    expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
    expect(onlyEntry(past).outcome).toBe('deadline_exceeded')
    expect(bench.traffic()).toBe(traffic)
    await bench.call()
    expect(bench.traffic()).toBeGreaterThan(traffic)
  },

  "a child narrower than the request ends its own call, not the other's": async (client, context) => {
    await using bench = await client.bench('is slow', {}, context)
    await underDeadline(5_000, async (deadline) => {
      const narrow = deadline.child({ timeout: 75 })
      const cut = failureOf(runWithDeadline(narrow, bench.call))
      const answer = bench.call()
      expect(causesOf(await cut)).toContain(narrow.reason)
      expect(await answer).toBeDefined()
    })
  },
}
