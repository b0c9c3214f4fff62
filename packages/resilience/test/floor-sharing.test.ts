import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as immediate } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { ManualClock } from '@timebudget/core/testing'
import { type FloorStore, Latency, learnedFloor, type LearnedFloor, memoryStore } from '../src/index.ts'
import { teach } from './support/floors.ts'
import { seededRandom } from './support/seeded-random.ts'

/** A store that notes what it is asked. */
function noted(store: FloorStore): FloorStore & { asked: string[]; ttls: number[] } {
  const asked: string[] = []
  const ttls: number[] = []
  return {
    asked,
    ttls,
    async get(key) {
      asked.push('get')
      return store.get(key)
    },
    async set(key, value, ttl) {
      asked.push('set')
      ttls.push(ttl)
      return store.set(key, value, ttl)
    },
  }
}

function failing(fail: () => Promise<never>): FloorStore & { asked: number } {
  const store = {
    asked: 0,
    get(): Promise<never> {
      store.asked += 1
      return fail()
    },
    set: async () => undefined,
  }
  return store
}

const stranger = new Latency()
stranger.record(200)
const partOfAStranger = { replica: 'stranger', turn: 1, latency: stranger.snapshot() }

// what falls into one tick happens at once
const ticksInSecond = 50

async function pass(
  clock: ManualClock,
  seconds: number,
  floors: readonly LearnedFloor[] = [],
): Promise<void> {
  for (let tick = 0; tick < seconds * ticksInSecond; tick += 1) {
    if (tick % ticksInSecond === 0) for (const floor of floors) floor.current(1000)
    clock.advance(1000 / ticksInSecond)
    await immediate()
  }
}

function replicas(count: number, store: FloorStore): { floors: LearnedFloor[]; clock: ManualClock } {
  const clock = new ManualClock()
  const random = seededRandom(6)
  const floors = Array.from({ length: count }, () => learnedFloor('retrieve', { store, clock, random }))
  return { floors, clock }
}

describe('replicas that share a store', () => {
  test('learn from each other, and count nothing twice however often they read', async () => {
    const { floors, clock } = replicas(3, memoryStore())
    const [one, two, three] = floors
    if (one === undefined || two === undefined || three === undefined) throw new Error('three floors')
    for (let second = 0; second < 30; second += 1) {
      one.record({ spent: 200, outcome: 'ok' })
      two.record({ spent: 400, outcome: 'operation_timeout' })
      await pass(clock, 1, floors)
    }
    await pass(clock, 10, floors)
    for (const floor of floors) {
      expect(floor.latency.samples).toBe(60)
      expect(floor.latency.chance(300)).toBeCloseTo(0.5, 5)
    }
    expect(three.latency.snapshot().done.bins).toEqual([])
  })

  test('a new one knows at once what the others know', async () => {
    const store = memoryStore()
    const { floors, clock } = replicas(1, store)
    for (const floor of floors) teach(floor, 200)
    await pass(clock, 10, floors)
    const late = learnedFloor('retrieve', { store, clock })
    expect(late.current()).toBe(0)
    late.current(1000)
    await pass(clock, 1)
    expect(late.current()).toBeCloseTo(200, -0.7)
  })

  test('one that has ended is forgotten after a window', async () => {
    const store = noted(memoryStore())
    const { floors, clock } = replicas(2, store)
    const [stays, ends] = floors
    if (stays === undefined || ends === undefined) throw new Error('two floors')
    teach(ends, 200)
    await pass(clock, 20, floors)
    expect(stays.latency.samples).toBe(100)
    await pass(clock, 80, [stays])
    expect(stays.latency.samples).toBe(0)
    expect(JSON.parse((await store.get('timebudget:floor:retrieve')) ?? '')).toMatchObject({
      parts: [{ replica: expect.any(String) as string }],
    })
  })

  test('ask it every few seconds, not at every call, and not at all while nothing happens', async () => {
    const store = noted(memoryStore())
    const { floors, clock } = replicas(1, store)
    await pass(clock, 60, floors)
    expect(store.asked.length).toBeGreaterThan(2 * 8)
    expect(store.asked.length).toBeLessThanOrEqual(2 * 17)
    expect(store.ttls[0]).toBe(120_000)
    await pass(clock, 10)
    const before = store.asked.length
    await pass(clock, 600)
    expect(store.asked).toHaveLength(before)
    expect(clock.pendingTimers).toBe(0)
  })

  test('ask it outside of any request', async () => {
    const request = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    await new Promise<void>((resolve) => {
      const store: FloorStore = {
        get: async () => {
          seen.push(request.getStore())
          return undefined
        },
        set: async () => {
          seen.push(request.getStore())
          resolve()
        },
      }
      const floor = learnedFloor('retrieve', { store })
      request.run('a request', () => floor.current(1000))
    })
    expect(seen).toEqual([undefined, undefined])
  })

  test.each([
    'no json',
    '7',
    'null',
    '{}',
    '{"version":2,"parts":[]}',
    '{"version":1,"parts":{"length":1}}',
    '{"version":1,"parts":[null,7,{},{"replica":1,"turn":1,"latency":{}}]}',
    JSON.stringify({ version: 1, parts: [{ ...partOfAStranger, latency: { version: 1 } }] }),
    JSON.stringify({ version: 1, parts: [{ ...partOfAStranger, replica: 'x'.repeat(65) }] }),
    JSON.stringify({ version: 1, parts: [{ ...partOfAStranger, turn: '1' }] }),
    JSON.stringify({ version: 2, parts: [partOfAStranger] }),
    JSON.stringify({ version: 1, padding: 'x'.repeat(2 ** 20), parts: [partOfAStranger] }),
  ])('are not disturbed by what is none of theirs (%#)', async (garbage) => {
    const store = memoryStore()
    await store.set('timebudget:floor:retrieve', garbage, 60_000)
    const { floors, clock } = replicas(2, store)
    for (const floor of floors) teach(floor, 200)
    await pass(clock, 20, floors)
    for (const floor of floors) expect(floor.latency.samples).toBe(200)
    const kept: unknown = JSON.parse((await store.get('timebudget:floor:retrieve')) ?? '')
    expect(kept).toHaveProperty('parts.length', 2)
  })

  test('however many there are, keep what 32 of them know', async () => {
    const store = memoryStore()
    const { floors, clock } = replicas(40, store)
    for (const floor of floors) floor.record({ spent: 10, outcome: 'ok' })
    await pass(clock, 20, floors)
    const kept: unknown = JSON.parse((await store.get('timebudget:floor:retrieve')) ?? '')
    expect(kept).toHaveProperty('parts.length', 32)
  })
})

describe('a store that does not answer', () => {
  test('is warned of once, and asked ever less often', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const store = failing(async () => {
      throw new Error('connection refused')
    })
    const { floors, clock } = replicas(1, store)
    await pass(clock, 600, floors)
    expect(warned).toHaveBeenCalledTimes(1)
    expect(String(warned.mock.calls[0]?.[0])).toContain('connection refused')
    expect(store.asked).toBeGreaterThan(6)
    expect(store.asked).toBeLessThan(20)
    warned.mockRestore()
  })

  test('or throws at once, or never settles, changes nothing for the floor, which tries again', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    for (const fail of [
      (): Promise<never> => new Promise(() => undefined),
      (): never => {
        throw new Error('closed')
      },
    ]) {
      const store = failing(fail)
      const { floors, clock } = replicas(1, store)
      for (const floor of floors) teach(floor, 200)
      await pass(clock, 50, floors)
      for (const floor of floors) expect(floor.current()).toBeCloseTo(200, -0.7)
      expect(store.asked).toBeGreaterThanOrEqual(2)
    }
    warned.mockRestore()
  })

  test('and then does, is shared through again', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const memory = memoryStore()
    let down = true
    const store: FloorStore = {
      get: async (key) => (down ? Promise.reject(new Error('down')) : memory.get(key)),
      set: (key, value, ttl) => memory.set(key, value, ttl),
    }
    const { floors, clock } = replicas(2, store)
    await pass(clock, 20, floors)
    down = false
    floors[0]?.record({ spent: 10, outcome: 'ok' })
    await pass(clock, 45, floors)
    expect(floors[1]?.latency.samples).toBe(1)
    warned.mockRestore()
  })
})
