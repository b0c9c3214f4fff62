import { Deadline, operation } from '@timebudget/core'
import { expect, test } from 'vitest'
import { VirtualClock } from '../src/simulate/virtual-clock.ts'

test('virtual time jumps from one wake-up to the next, in order, and the first who asked comes first', async () => {
  const clock = new VirtualClock()
  const seen: string[] = []
  clock.wakeAfter(20, () => seen.push(`late at ${clock.now()}`))
  clock.wakeAfter(10, () => seen.push(`one at ${clock.now()}`))
  clock.wakeAfter(10, () => seen.push(`two at ${clock.now()}`))
  await clock.run()
  expect(seen).toEqual(['one at 10', 'two at 10', 'late at 20'])
})

test('many wake-ups in any order come in order of time', async () => {
  const clock = new VirtualClock()
  const delays = Array.from({ length: 2_000 }, (_, index) => (index * 7_919) % 1_009)
  const seen: number[] = []
  for (const delay of delays) clock.wakeAfter(delay, () => seen.push(clock.now()))
  await clock.run()
  expect(seen).toEqual(delays.toSorted((a, b) => a - b))
})

test('a cancelled wake-up never comes', async () => {
  const clock = new VirtualClock()
  const seen: string[] = []
  const timer = clock.wakeAfter(10, () => seen.push('cancelled'))
  clock.wakeAfter(5, () => timer.cancel())
  await clock.run()
  expect(seen).toEqual([])
})

test('all that a wake-up sets going, however long the chain of promises, is done at the same moment', async () => {
  const clock = new VirtualClock()
  const seen: string[] = []
  const work = async (): Promise<void> => {
    for (let turn = 0; turn < 200; turn += 1) await Promise.resolve()
    seen.push(`work done at ${clock.now()}`)
  }
  clock.wakeAfter(10, () => void work())
  clock.wakeAfter(11, () => seen.push('next'))
  await clock.run()
  expect(seen).toEqual(['work done at 10', 'next'])
})

test('a run rejects with what a wake-up throws', async () => {
  const clock = new VirtualClock()
  clock.wakeAfter(1, () => {
    throw new Error('broken')
  })
  await expect(clock.run()).rejects.toThrow('broken')
})

test('deadlines and operations keep virtual time', async () => {
  const clock = new VirtualClock()
  const deadline = Deadline.after('2m', { clock })
  const outcome = operation('hang', { deadline, timeout: '90s' }, () => new Promise(() => undefined)).catch(
    (error: unknown) => ({ error, at: clock.now() }),
  )
  await clock.run()
  expect(await outcome).toMatchObject({ error: { code: 'OPERATION_TIMEOUT' }, at: 90_000 })
})
