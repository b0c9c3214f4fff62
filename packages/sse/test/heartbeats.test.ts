import { ManualClock } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { Heartbeats, heartbeatsOf } from '../src/heartbeats.ts'

function beating(clock: ManualClock): { beat(): void; readonly at: number[] } {
  const at: number[] = []
  return { at, beat: () => void at.push(clock.now()) }
}

test('all streams share one timer, whatever their intervals', () => {
  const clock = new ManualClock()
  const heartbeats = new Heartbeats(clock)
  const streams = Array.from({ length: 500 }, () => beating(clock))
  for (const [index, stream] of streams.entries()) heartbeats.restart(stream, 1_000 + (index % 3))
  expect(clock.pendingTimers).toBe(1)
  clock.advance(1_002)
  expect(streams.map(({ at }) => at.length)).toEqual(streams.map(() => 1))
  expect(clock.pendingTimers).toBe(1)
  for (const [index, stream] of streams.entries()) heartbeats.stop(stream, 1_000 + (index % 3))
  expect(clock.pendingTimers).toBe(0)
  clock.advance(10_000)
  expect(streams.map(({ at }) => at.length)).toEqual(streams.map(() => 1))
})

test('a stream beats once an interval of silence, counted from its last write', () => {
  const clock = new ManualClock()
  const heartbeats = new Heartbeats(clock)
  const [quiet, busy] = [beating(clock), beating(clock)]
  heartbeats.restart(quiet, 100)
  heartbeats.restart(busy, 100)
  for (let now = 30; now <= 330; now += 30) {
    clock.advance(30)
    if (now <= 240) heartbeats.restart(busy, 100)
  }
  clock.advance(70)
  expect(quiet.at).toEqual([100, 200, 300, 400])
  expect(busy.at).toEqual([340])
})

test('a stream that is stopped by the beat of another does not beat', () => {
  const clock = new ManualClock()
  const heartbeats = new Heartbeats(clock)
  const second = beating(clock)
  const first = { beat: () => heartbeats.stop(second, 100) }
  heartbeats.restart(first, 100)
  heartbeats.restart(second, 100)
  clock.advance(500)
  expect(second.at).toEqual([])
})

test('the timer that a shorter interval needs comes in place of a later one', () => {
  const clock = new ManualClock()
  const heartbeats = new Heartbeats(clock)
  const [slow, fast] = [beating(clock), beating(clock)]
  heartbeats.restart(slow, 1_000)
  heartbeats.restart(fast, 10)
  expect(clock.pendingTimers).toBe(1)
  clock.advance(35)
  expect(fast.at).toEqual([10, 20, 30])
  heartbeats.restart(beating(clock), Infinity)
  expect(slow.at).toEqual([])
})

test('a process has one for each clock', () => {
  const clock = new ManualClock()
  expect(heartbeatsOf(clock)).toBe(heartbeatsOf(clock))
  expect(heartbeatsOf()).not.toBe(heartbeatsOf(clock))
})
