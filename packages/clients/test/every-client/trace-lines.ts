import { getEventListeners } from 'node:events'
import { expect } from 'vitest'
import { onlyEntry, pause, underDeadline, until } from '../support/calls.ts'
import type { Lines } from './any-client.ts'

/** What is left behind when a call has gone well. */
export const traceLines: Lines = {
  'two hundred calls of one request leave no listener, no timer and no warning': async (client, context) => {
    await using bench = await client.bench('answers', {}, context)
    await bench.bare()
    await bench.call()
    const timers = pendingTimers()
    const warnings = await notedOn('warning', () =>
      underDeadline(3_600_000, async (deadline) => {
        const { signal } = deadline
        const listeners = getEventListeners(signal, 'abort').length
        for (let call = 0; call < 50; call += 1) await bench.call()
        await Promise.all(Array.from({ length: 150 }, bench.call))
        await pause(5)
        expect(getEventListeners(signal, 'abort')).toHaveLength(listeners)
        expect(signal.aborted).toBe(false)
        expect(deadline.ledger.entries.filter(({ outcome }) => outcome === 'ok')).toHaveLength(200)
      }),
    )
    expect(pendingTimers()).toBeLessThanOrEqual(timers)
    expect(warnings).toEqual([])
  },

  'a success is not followed by an end': async (client, context) => {
    await using bench = await client.bench('answers', {}, context)
    const rejections = await notedOn('unhandledRejection', () =>
      underDeadline(300, async (deadline) => {
        expect(await bench.call()).toBeDefined()
        await until(() => deadline.expired)
        await pause(20)
        expect(onlyEntry(deadline).outcome).toBe('ok')
      }),
    )
    expect(rejections).toEqual([])
  },
}

async function notedOn(
  event: 'warning' | 'unhandledRejection',
  work: () => Promise<void>,
): Promise<unknown[]> {
  const noted: unknown[] = []
  const note = (value: unknown): unknown => noted.push(value)
  process.on(event as 'warning', note)
  try {
    await work()
  } finally {
    process.off(event, note)
  }
  return noted
}

function pendingTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
}
