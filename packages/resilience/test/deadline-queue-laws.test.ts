import { ClientClosedError, type Deadline } from '@timebudget/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DeadlineQueueOptions, QueueRequest } from '../src/index.ts'
import { atRest, type Caller, Scene } from './support/queue.ts'

/** Milliseconds: as exactly as the test knows when somebody heard. */
const grain = 20

interface Visitor {
  readonly caller: Caller
  readonly deadline: Deadline
  readonly due: number
}

type Step =
  | { readonly kind: 'come'; readonly budget: number; readonly request: QueueRequest }
  | { readonly kind: 'work'; readonly budget: number; readonly takes: number; readonly fails: boolean }
  | { readonly kind: 'turn'; readonly by: number }
  | { readonly kind: 'block'; readonly by: number }
  | { readonly kind: 'release' | 'cancel'; readonly who: number; readonly twice: boolean }

const request: fc.Arbitrary<QueueRequest> = fc.record(
  {
    priority: fc.integer({ min: 0, max: 2 }),
    class: fc.constantFrom('a', 'b', 'c'),
    estimate: fc.integer({ min: 0, max: 400 }),
    floor: fc.integer({ min: 0, max: 50 }),
    reserve: fc.integer({ min: 0, max: 30 }),
    timeout: fc.integer({ min: 1, max: 500 }),
  },
  { requiredKeys: [] },
)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('come'), budget: fc.integer({ min: 1, max: 800 }), request }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('work'),
      budget: fc.integer({ min: 1, max: 800 }),
      takes: fc.integer({ min: 0, max: 1000 }),
      fails: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('turn'), by: fc.integer({ min: 0, max: 300 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('block'), by: fc.integer({ min: 0, max: 100 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('release', 'cancel'),
      who: fc.nat(50),
      twice: fc.boolean(),
    }),
  },
)

const options: fc.Arbitrary<Omit<DeadlineQueueOptions, 'clock'>> = fc.record({
  slots: fc.integer({ min: 1, max: 3 }),
  estimate: fc.constantFrom(undefined, 0, 60, 200),
  maxWaiting: fc.constantFrom(0, 2, 100),
})

async function take(scene: Scene, visitors: Visitor[], each: Step): Promise<void> {
  const now = scene.clock.now()
  switch (each.kind) {
    case 'come': {
      const deadline = scene.deadline(each.budget)
      visitors.push({ caller: scene.come({ ...each.request, deadline }), deadline, due: now + each.budget })
      return
    }
    case 'work': {
      const deadline = scene.deadline(each.budget)
      const caller: Caller = { state: 'waiting', slot: undefined, error: undefined, at: now }
      const work = (): Promise<void> =>
        new Promise((resolve, reject) => {
          scene.clock.wakeAfter(each.takes, () => (each.fails ? reject(new Error('failed')) : resolve()))
        })
      const end = (): void => void Object.assign(caller, { state: 'refused', at: scene.clock.now() })
      scene.queue.run(work, { deadline }).then(end, end)
      visitors.push({ caller, deadline, due: now + each.budget })
      return
    }
    case 'turn':
      return scene.turn(each.by, grain)
    case 'block':
      return scene.clock.block(each.by)
    case 'release':
    case 'cancel': {
      const visitor = visitors[each.who % Math.max(1, visitors.length)]
      if (each.kind === 'cancel') visitor?.deadline.cancel(new ClientClosedError('the client has left'))
      visitor?.caller.slot?.release()
      if (each.twice) visitor?.caller.slot?.release()
    }
  }
}

test('whatever happens no more run than there are slots, nobody waits beside a free one, and all hear by their deadline', async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { minLength: 5, maxLength: 60 }), async (chosen, steps) => {
      const scene = new Scene(chosen)
      const visitors: Visitor[] = []
      for (const each of steps) {
        await take(scene, visitors, each)
        expect(scene.queue.running).toBeLessThanOrEqual(chosen.slots)
        await atRest()
        expect(scene.queue.running).toBeLessThanOrEqual(chosen.slots)
        if (scene.queue.waiting > 0) expect(scene.queue.busy).toBe(true)
      }
      const blocked = steps.reduce((sum, each) => sum + (each.kind === 'block' ? each.by : 0), 0)
      await scene.turn(2000, grain)
      for (const { caller, due } of visitors) {
        if (caller.state === 'waiting') throw new Error('somebody has never heard')
        expect(caller.at).toBeLessThanOrEqual(due + blocked + grain)
      }
      expect(scene.queue).toMatchObject({ running: 0, waiting: 0 })
      expect(scene.clock.pendingTimers).toBe(0)
      const fresh = await scene.fill()
      expect(fresh).toHaveLength(chosen.slots)
    }),
    { seed: 7, numRuns: 150 },
  )
}, 60_000)
