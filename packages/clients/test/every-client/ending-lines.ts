import { expect, type TestContext } from 'vitest'
import { ClientClosedError } from '@timebudget/core'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline } from '../support/calls.ts'
import { timeOf } from '../support/time-of.ts'
import type { AnyClient, Bench, Lines, SeenCall } from './any-client.ts'

/** What holds before the first byte of an answer holds after it as well. */
const hanging = ['is silent', 'stalls'] as const

interface End {
  readonly behaviour: (typeof hanging)[number]
  readonly budget: number
  readonly timeout: number | undefined
  readonly leaves: boolean
}

// not all at the same moment
const ends: readonly End[] = hanging.flatMap((behaviour) => [
  { behaviour, budget: 170, timeout: undefined, leaves: false },
  { behaviour, budget: 10_000, timeout: 120, leaves: false },
  { behaviour, budget: 10_000, timeout: undefined, leaves: true },
])

/** How a call ends before its answer does. */
export const endingLines: Lines = {
  'at the deadline a call fails with our error, before its answer and in the middle of it': (
    client,
    context,
  ) =>
    each(client, hanging, async (behaviour) => {
      await using bench = await client.bench(behaviour, {}, context)
      await underDeadline(150, async (deadline) => {
        const failure = await failureOf(bench.call())
        expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
        expect(causesOf(failure)).toContain(deadline.reason)
        expect(deadline.elapsed()).toBeGreaterThanOrEqual(150)
        expect(deadline.elapsed()).toBeLessThan(500)
        expect(onlyEntry(deadline)).toMatchObject({ name: client.operation, outcome: 'deadline_exceeded' })
      })
    }),

  'a timeout of its own, shorter than what is left, is told from the deadline': async (client, context) => {
    await using bench = await client.bench('is silent', { timeout: 100 }, context)
    await underDeadline(5_000, async (deadline) => {
      expect(codesOf(await failureOf(bench.call()))).toContain('OPERATION_TIMEOUT')
      expect(deadline.elapsed()).toBeLessThan(1_000)
      expect(deadline.reason).toBeUndefined()
      expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
    })
  },

  'a timeout alone is kept without any deadline around': async (client, context) => {
    await using bench = await client.bench('stalls', { timeout: '100ms' }, context)
    const begun = performance.now()
    expect(codesOf(await failureOf(bench.call()))).toContain('OPERATION_TIMEOUT')
    expect(performance.now() - begun).toBeLessThan(1_000)
  },

  'a client that leaves ends the call at once, and that is no failure': (client, context) =>
    each(client, hanging, async (behaviour) => {
      await using bench = await client.bench(behaviour, {}, context)
      await underDeadline(10_000, async (deadline) => {
        const { failed } = await hangingCall(bench)
        const left = new ClientClosedError('the client went away')
        deadline.cancel(left)
        expect(await timeOf(failed)).toBeLessThan(100)
        expect(causesOf(await failed)).toContain(left)
        expect(onlyEntry(deadline).outcome).toBe('client_closed')
      })
    }),

  'however a call ends before its answer does, its upstream knows within 100 ms': (client, context) =>
    each(client, ends, async (end) => {
      // a machine with too much to do may need longer for a call to arrive
      const isKnown =
        (await knowsOfTheEnd(client, end, context)) || (await knowsOfTheEnd(client, later(end), context))
      expect(isKnown).toBe(true)
    }),
}

function later({ budget, timeout, ...end }: End): End {
  return { ...end, budget: 5 * budget, timeout: timeout === undefined ? undefined : 5 * timeout }
}

/** Whether the call arrived at all; expects the upstream to know of its end then. */
async function knowsOfTheEnd(
  client: AnyClient,
  { behaviour, budget, timeout, leaves }: End,
  context: TestContext,
): Promise<boolean> {
  await using bench = await client.bench(behaviour, { timeout }, context)
  const hasArrived = await underDeadline(budget, async (deadline) => {
    const { failed, seen } = await hangingCall(bench)
    if (seen === undefined) return false
    if (leaves) deadline.cancel(new ClientClosedError('the client went away'))
    await failed
    const abandoned = Promise.race([seen.abandoned(), pause(1_000).then(() => 'still served')])
    expect(await timeOf(abandoned)).toBeLessThan(100)
    expect(await abandoned).not.toBe('still served')
    return true
  })
  return hasArrived
}

/** A call that has arrived, unless it ended before; its answer has begun if it ever does. */
async function hangingCall(
  bench: Bench,
): Promise<{ readonly failed: Promise<unknown>; readonly seen: SeenCall | undefined }> {
  const failed = failureOf(bench.call())
  const seen = await Promise.race([bench.nextCall(), failed])
  if (!isSeenCall(seen)) return { failed, seen: undefined }
  await pause(20)
  return { failed, seen }
}

function isSeenCall(seen: unknown): seen is SeenCall {
  return typeof seen === 'object' && seen !== null && 'abandoned' in seen
}

/** Checks all at once, where that is possible. */
async function each<T>(
  { isAlone = false }: AnyClient,
  things: readonly T[],
  check: (thing: T) => Promise<void>,
): Promise<void> {
  if (!isAlone) await Promise.all(things.map(check))
  else for (const thing of things) await check(thing)
}
