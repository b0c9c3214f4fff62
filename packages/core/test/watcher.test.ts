import { expect, test } from 'vitest'
import { Deadline } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { internals } from '../src/deadline.ts'

function watched({ isOver }: { readonly isOver: boolean }): {
  readonly clock: ManualClock
  readonly deadline: Deadline
  readonly told: string[]
} {
  const clock = new ManualClock()
  const deadline = Deadline.after(100, { clock })
  const told: string[] = []
  const watcher = { isOver: () => isOver, deadlineEnded: () => told.push('watcher') }
  internals.watch(deadline, watcher, { hold: false })
  deadline.signal.addEventListener('abort', () => told.push('signal'))
  deadline.child({}).signal.addEventListener('abort', () => told.push('child'))
  return { clock, deadline, told }
}

test('a watcher hears of the end before the signal, and that before the children', () => {
  const { clock, told } = watched({ isOver: false })
  clock.advance(100)
  expect(told).toEqual(['watcher', 'signal', 'child'])
})

test('a watcher whose work is over settles the deadline as its time is up: the signal of finished work stays still', () => {
  const { clock, deadline, told } = watched({ isOver: true })
  clock.advance(100)
  expect(told).toEqual(['child'])
  deadline.cancel()
  expect(told).toEqual(['child'])
})

test('a watcher of a settled deadline hears nothing more', () => {
  const { clock, deadline, told } = watched({ isOver: false })
  deadline.settle()
  clock.advance(100)
  expect(told).toEqual(['child'])
})

test('a watcher of a deadline that has ended is told so when it comes', () => {
  const deadline = Deadline.after(0, { clock: new ManualClock() })
  const watcher = { isOver: () => false, deadlineEnded: () => expect.unreachable() }
  expect(internals.watch(deadline, watcher, { hold: false })).toBe(deadline.reason)
})

test('a watcher that settles what is below, as it hears of the end, lets what is below that hear of it too', () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock }).child({ timeout: 500 })
  const below = deadline.child({})
  const { signal } = below.child({})
  internals.watch(deadline, { isOver: () => false, deadlineEnded: () => below.settle() }, { hold: false })
  deadline.cancel()
  expect(signal.reason).toBe(deadline.reason)
})
