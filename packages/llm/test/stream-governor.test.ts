import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import { parseProfile, type Profile } from '../src/profiles.ts'
import { type Limit, StreamGovernor } from '../src/stream-governor.ts'

const profile: Profile = {
  connect: 100,
  firstToken: 500,
  idle: { content: 400, transport: 150 },
  total: 5_000,
}

function governing({ streams = true, ...changes }: Partial<Profile> & { readonly streams?: boolean } = {}): {
  readonly clock: ManualClock
  readonly governor: StreamGovernor
  readonly passed: Limit[]
} {
  const clock = new ManualClock()
  const passed: Limit[] = []
  const governor = new StreamGovernor({
    limits: parseProfile({ ...profile, ...changes }, 'profile'),
    clock,
    awaitsFirstToken: streams,
    onLimit: (limit) => passed.push(limit),
  })
  return { clock, governor, passed }
}

/** Turns the clock in small steps, doing the same after each. */
function every(clock: ManualClock, step: number, times: number, act: () => void): void {
  for (let turn = 0; turn < times; turn += 1) {
    clock.advance(step)
    act()
  }
}

describe('the limits of a stream', () => {
  test('a first token is waited for from the call on, whatever else arrives', () => {
    const { clock, governor, passed } = governing()
    every(clock, 49, 10, () => governor.transport(10))
    expect(passed).toEqual([])
    clock.advance(10)
    expect(passed).toEqual(['firstToken'])
  })

  test('a connection has its own limit, until it is made', () => {
    const { clock, governor, passed } = governing()
    clock.advance(50)
    governor.connecting()
    clock.advance(99)
    expect(passed).toEqual([])
    governor.connected()
    clock.advance(100)
    expect(passed).toEqual([])
    governor.connecting()
    clock.advance(100)
    expect(passed).toEqual(['connect'])
  })

  test('a stream that has begun stalls without content, though comments go on', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    every(clock, 100, 3, () => governor.transport(10))
    expect(passed).toEqual([])
    clock.advance(100)
    expect(passed).toEqual(['idleContent'])
  })

  test('and sooner without anything at all', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    clock.advance(149)
    expect(passed).toEqual([])
    clock.advance(1)
    expect(passed).toEqual(['idleTransport'])
  })

  test('comments keep a stream alive while the limit for content is far', () => {
    const { clock, governor, passed } = governing({ idle: { content: 4_000, transport: 150 } })
    governor.content()
    every(clock, 100, 20, () => governor.transport(10))
    governor.content()
    expect(passed).toEqual([])
  })

  test('the middle of a long event is no silence', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    every(clock, 100, 20, () => governor.transport(16_384))
    expect(passed).toEqual([])
  })

  test('but no first token either', () => {
    const { clock, governor, passed } = governing()
    every(clock, 100, 6, () => governor.transport(16_384))
    expect(passed).toEqual(['firstToken'])
  })

  test('the time in which nothing is read, for want of a reader, is not counted', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    clock.advance(100)
    governor.hold()
    clock.advance(2_000)
    governor.resume()
    clock.advance(49)
    expect(passed).toEqual([])
    clock.advance(1)
    expect(passed).toEqual(['idleTransport'])
  })

  test('towards the total it is', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    governor.hold()
    clock.advance(5_000)
    expect(passed).toEqual(['total'])
  })

  test('a steady stream ends at its total only', () => {
    const { clock, governor, passed } = governing()
    every(clock, 100, 49, () => governor.content())
    expect(passed).toEqual([])
    clock.advance(100)
    expect(passed).toEqual(['total'])
  })

  test('an answer without a stream has no first token, and is idle only once its body has begun', () => {
    const { clock, governor, passed } = governing({ streams: false })
    clock.advance(4_000)
    expect(passed).toEqual([])
    governor.content()
    clock.advance(150)
    expect(passed).toEqual(['idleTransport'])
  })

  test('what arrived while the process could not run counts before anybody is judged', () => {
    const { clock, governor, passed } = governing()
    governor.content()
    clock.block(1_000)
    clock.advance(0)
    governor.content()
    clock.advance(100)
    expect(passed).toEqual([])
    clock.block(1_000)
    clock.advance(1)
    clock.advance(1)
    expect(passed).toEqual(['idleTransport'])
  })

  test('one limit passes, once, and no timer is left', () => {
    const { clock, passed } = governing({ firstToken: 50, total: 50, connect: 50 })
    clock.advance(10_000)
    expect(passed).toEqual(['total'])
    expect(clock.pendingTimers).toBe(0)
  })

  test('a call that is done holds no timer, and hears no more of its limits', () => {
    const { clock, governor, passed } = governing()
    governor.connecting()
    governor.content()
    governor.done()
    governor.connecting()
    governor.content()
    governor.resume()
    expect(clock.pendingTimers).toBe(0)
    clock.advance(10_000)
    expect(passed).toEqual([])
  })

  test('a hundred thousand tokens need no more than one timer', () => {
    const { clock, governor } = governing()
    for (let token = 0; token < 100_000; token += 1) governor.content()
    expect(clock.pendingTimers).toBe(1)
  })
})
