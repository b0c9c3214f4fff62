import { Deadline, operation, OverloadedError, runWithDeadline } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import { DeadlineQueue, Latency, LatencyBook, type QueueRequest } from '../src/index.ts'
import { atRest, type Caller, Scene } from './support/queue.ts'

function overload(caller: Caller | undefined): OverloadedError {
  if (caller?.error instanceof OverloadedError) return caller.error
  throw new Error(`expected an OverloadedError, got ${String(caller?.error)}`)
}

describe('while a slot is free', () => {
  test('work begins at once, whatever its estimate says', async () => {
    const scene = new Scene({ slots: 2, estimate: '6s' })
    const first = scene.come({ budget: 100 })
    const second = scene.come({ budget: 100 })
    await atRest()
    expect([first.state, second.state]).toEqual(['holding', 'holding'])
    expect(first.slot?.waited).toBe(0)
    expect(scene.queue).toMatchObject({ running: 2, waiting: 0, busy: true })
    expect(scene.events.map(({ decision, predicted }) => [decision, predicted])).toEqual([
      ['admitted', 0],
      ['admitted', 0],
    ])
  })

  test('run gives the work its deadline and signal, and gives back what it returns', async () => {
    const scene = new Scene({ slots: 1 })
    const deadline = scene.deadline(500)
    const answer = await scene.queue.run(({ signal, timeout }) => `${signal.aborted} ${timeout}`, {
      deadline,
      operation: 'generate',
    })
    expect(answer).toBe('false 500')
    expect(deadline.ledger.entries.map(({ name, outcome }) => [name, outcome])).toEqual([['generate', 'ok']])
    expect(scene.queue.running).toBe(0)
  })

  test('work stands under the ambient deadline of whoever asked, not of whoever freed the slot', async () => {
    const queue = new DeadlineQueue({ slots: 1 })
    const holder = await queue.acquire()
    const seen = runWithDeadline(Deadline.after('9s', { label: 'asked' }), () =>
      queue.run(({ deadline }) => operation('inner', {}, () => deadline.remaining())),
    )
    const without = queue.run(({ deadline }) => deadline.remaining())
    runWithDeadline(Deadline.after('1s', { label: 'freed' }), () => holder.release())
    expect(await without).toBe(Infinity)
    expect(await seen).toBeGreaterThan(5000)
    expect(await seen).toBeLessThanOrEqual(9000)
  })
})

describe('while all slots are taken', () => {
  test('the earliest deadline goes first', async () => {
    const scene = new Scene({ slots: 1, estimate: 100 })
    const [holder] = await scene.fill()
    const late = scene.come({ budget: 9000 })
    const early = scene.come({ budget: 3000 })
    const between = scene.come({ budget: 6000 })
    await scene.release(holder)
    expect(early.state).toBe('holding')
    await scene.release(early)
    expect(between.state).toBe('holding')
    await scene.release(between)
    expect(late.state).toBe('holding')
  })

  test('who comes without a deadline stands as if it were five minutes away, so that its turn comes', async () => {
    const scene = new Scene({ slots: 1, estimate: 100 })
    const [holder] = await scene.fill()
    const background = scene.come()
    await scene.turn(299_000)
    const request = scene.come({ budget: 5000 })
    await scene.release(holder)
    expect([background.state, request.state]).toEqual(['holding', 'waiting'])
  })

  test('a smaller number of priority goes before an earlier deadline', async () => {
    const scene = new Scene({ slots: 1, estimate: 100 })
    const [holder] = await scene.fill()
    const batch = scene.come({ budget: 1000, priority: 1 })
    const user = scene.come({ budget: 9000 })
    await scene.release(holder)
    expect([user.state, batch.state]).toEqual(['holding', 'waiting'])
  })

  test('as long as nobody knows how long anything takes the newest goes first', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const older = scene.come({ budget: 1000 })
    const newer = scene.come({ budget: 9000 })
    await scene.release(holder)
    expect([older.state, newer.state]).toEqual(['waiting', 'holding'])
  })

  test('the wait is predicted from what runs and from what has an earlier deadline', async () => {
    const scene = new Scene({ slots: 2, estimate: '6s' })
    scene.come()
    await scene.turn(2000)
    scene.come()
    expect(scene.queue.predictedWait()).toBe(4000) // until the first slot is free
    scene.come({ budget: 60_000 })
    scene.come({ budget: 80_000 })
    expect(scene.queue.predictedWait({ deadline: scene.deadline(70_000) })).toBe(4000 + 6000 / 2)
    expect(scene.queue.predictedWait({ deadline: scene.deadline(90_000) })).toBe(4000 + 12_000 / 2)
    expect(scene.queue.predictedWait({ deadline: scene.deadline(90_000), priority: -1 })).toBe(4000)
  })

  test('a lower priority waits for all of a higher one, but for the tenth that it is guaranteed', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    const [holder] = await scene.fill()
    const users = [1, 2, 3].map(() => scene.come({ budget: 60_000 }))
    const batch = scene.come({ budget: 60_000, priority: 1 })
    await scene.turn(1000)
    await scene.release(holder)
    expect(users[0]?.state).toBe('holding') // and the batch has earned its first tenth
    await scene.turn(1000)
    await scene.release(users[0])
    expect(batch.state).toBe('holding') // which it now owes
    expect(scene.queue.predictedWait({ priority: 1 })).toBe(1000 + 2 * 1000)
  })

  test('who cannot finish in time is refused on arrival, and told after which time it could', async () => {
    const scene = new Scene({ name: 'gpu', slots: 1, estimate: '6s' })
    await scene.fill()
    scene.come({ budget: 13_000 })
    const deadline = scene.deadline(14_000)
    const refused = scene.come({ deadline, operation: 'generate' })
    await atRest()
    const error = overload(refused)
    expect(error).toMatchObject({
      outcome: 'shed',
      status: 503,
      operation: 'generate',
      budget: 14_000,
      remaining: 14_000,
      retryAfter: 4000, // then 8 s of the 12 stand before it
      headers: { 'retry-after': '4' },
    })
    expect(error.message).toBe(
      'gpu: no time for generate: its turn comes after about 12000 ms and takes about 6000 ms, 14000 ms are left; 1 wait for 1 slots',
    )
    expect(deadline.ledger.entries.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['gpu-wait', 'shed'],
    ])
  })

  test('who comes again after that time, with the same budget, is taken', async () => {
    const scene = new Scene({ slots: 1, estimate: '6s' })
    await scene.fill()
    scene.come({ budget: 13_000 })
    const refused = scene.come({ budget: 14_000 })
    await atRest()
    const retryAfter = overload(refused).retryAfter ?? Number.NaN
    await scene.turn(retryAfter - 1)
    const tooEarly = scene.come({ budget: 14_000 })
    await scene.turn(1)
    const inTime = scene.come({ budget: 14_000 })
    await atRest()
    expect([tooEarly.state, inTime.state]).toEqual(['refused', 'waiting'])
  })

  test('who could never finish is told to come when nobody waits any more', async () => {
    const scene = new Scene({ slots: 1, estimate: '6s' })
    await scene.fill()
    scene.come({ budget: 20_000 })
    const hopeless = scene.come({ budget: 2000 })
    await atRest()
    expect(overload(hopeless).retryAfter).toBe(12_000)
  })

  test('whose turn comes too late is refused then, and the slot goes to the next', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    const [holder] = await scene.fill()
    await scene.turn(900)
    const first = scene.come({ budget: 2000 })
    const second = scene.come({ budget: 4000 })
    await scene.turn(1500) // the holder takes longer than anybody thought
    await scene.release(holder)
    expect(first.state).toBe('refused')
    expect(overload(first)).toMatchObject({ outcome: 'shed', remaining: 500 })
    expect(second.state).toBe('holding')
    expect(second.slot?.waited).toBe(1500)
  })

  test('who needs more than a floor when its turn comes is short-circuited, and the slot goes to the next', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const next = scene.come({ budget: 9000 })
    const short = scene.come({ budget: 1000, floor: 600 })
    await scene.turn(500)
    await scene.release(holder)
    expect(short.error).toMatchObject({ outcome: 'short_circuited', remaining: 500 })
    expect(next.state).toBe('holding')
  })

  test('with as many waiting as may wait whoever comes is refused', async () => {
    const scene = new Scene({ slots: 1, estimate: 10, maxWaiting: 1 })
    await scene.fill()
    const waiting = scene.come({ budget: 9000 })
    const refused = scene.come({ budget: 9000 })
    await atRest()
    expect([waiting.state, refused.state]).toEqual(['waiting', 'refused'])
    expect(overload(refused).message).toMatch(/1 wait for 1 slots/)
  })

  test('where the newest goes first it takes the place of whoever has waited longest', async () => {
    const scene = new Scene({ slots: 1, maxWaiting: 1 })
    await scene.fill()
    const older = scene.come({ budget: 9000 })
    const newer = scene.come({ budget: 9000 })
    await atRest()
    expect([older.state, newer.state]).toEqual(['refused', 'waiting'])
    expect(overload(older).outcome).toBe('shed')
  })

  test('a timeout of its own counts from arrival, for waiting and working together', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const waits = scene.come({ timeout: 1000 })
    const works = scene.come({ timeout: 1000 })
    await scene.turn(400)
    await scene.release(holder)
    expect(works.slot?.timeout).toBe(600)
    await scene.turn(599)
    expect(works.slot?.signal.aborted).toBe(false)
    await scene.turn(1)
    expect(works.slot?.signal.reason).toMatchObject({ outcome: 'operation_timeout' })
    expect(waits.error).toMatchObject({ outcome: 'operation_timeout' })
  })

  test('the ledger says how long was waited, and then what the work took', async () => {
    const scene = new Scene({ name: 'gpu', slots: 1 })
    const [holder] = await scene.fill()
    const deadline = scene.deadline(5000)
    const caller = scene.come({ deadline, operation: 'generate' })
    await scene.turn(700)
    await scene.release(holder)
    await scene.turn(300)
    await scene.release(caller)
    expect(deadline.ledger.entries.map(({ name, spent, outcome }) => ({ name, spent, outcome }))).toEqual([
      { name: 'gpu-wait', spent: 700, outcome: 'ok' },
      { name: 'generate', spent: 300, outcome: 'ok' },
    ])
  })
})

describe('estimates', () => {
  test('are learned per key from what was done and what was cut off', async () => {
    const clock = new ManualClock()
    const book = new LatencyBook({ clock, minSamples: 5 })
    const scene = new Scene({ slots: 1, estimate: book, clock })
    const held = async (key: string, spent: number, request: { budget?: number } = {}): Promise<void> => {
      const caller = scene.come({ key, ...request })
      await atRest()
      clock.advance(spent)
      await scene.release(caller)
    }
    for (let call = 0; call < 10; call += 1) await held('big', 2000)
    for (let call = 0; call < 10; call += 1) await held('small', 50)
    for (let call = 0; call < 10; call += 1) await held('cut', 400, { budget: 400 })
    expect(book.of('big').quantile(0.5)).toBeCloseTo(2000, -2)
    expect(book.of('cut').chance(390)).toBe(0)
    expect(book.of('cut').chance(500)).toBeUndefined()
    await scene.fill()
    scene.come({ key: 'big', budget: 60_000 }) // so that somebody else wants the slot
    const big = scene.come({ key: 'big', budget: 1000 })
    const small = scene.come({ key: 'small', budget: 1000 })
    const unknown = scene.come({ key: 'never seen', budget: 1000 })
    await atRest()
    expect([big.state, small.state, unknown.state]).toEqual(['refused', 'waiting', 'waiting'])
  })

  test('learn nothing from what failed by itself', async () => {
    const clock = new ManualClock()
    const latency = new Latency({ clock })
    const queue = new DeadlineQueue({ slots: 1, estimate: latency, clock })
    const failing = queue.run(() => Promise.reject(new Error('upstream says 500')))
    await expect(failing).rejects.toThrow('upstream says 500')
    await queue.run(() => 'fine')
    expect(latency.samples).toBe(1)
  })

  test('that somebody gave are read in the light of how wrong they were before', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    for (let call = 0; call < 40; call += 1) {
      const caller = scene.come()
      await scene.turn(3000)
      await scene.release(caller)
    }
    await scene.fill()
    expect(scene.queue.predictedWait()).toBeGreaterThan(2900)
    expect(scene.queue.predictedWait()).toBeLessThan(3100)
    const refused = scene.come({ budget: 5000 })
    const taken = scene.come({ budget: 7000 })
    await atRest()
    expect([refused.state, taken.state]).toEqual(['refused', 'waiting'])
  })

  test('may come from a function of the request, or with the request itself', async () => {
    const scene = new Scene({ slots: 1, estimate: ({ key }) => (key === 'big' ? '8s' : undefined) })
    await scene.fill()
    const big = scene.come({ key: 'big', budget: 5000 })
    const unknown = scene.come({ budget: 5000 })
    const told = scene.come({ budget: 5000, estimate: '9s' })
    await atRest()
    expect([big.state, unknown.state, told.state]).toEqual(['refused', 'waiting', 'refused'])
  })

  test('of work that outruns them grow by a quarter instead of falling to nothing', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    await scene.fill()
    await scene.turn(5000)
    expect(scene.queue.predictedWait()).toBe(250)
  })

  test('never outlast the deadline of who holds the slot', async () => {
    const scene = new Scene({ slots: 1, estimate: '60s' })
    scene.come({ budget: 800 })
    await atRest()
    expect(scene.queue.predictedWait()).toBe(800)
  })
})

describe('options', () => {
  test.each([
    [{ slots: 0 }, /^slots:/],
    [{ slots: 1.5 }, /^slots:/],
    [{ slots: 1, estimate: 'soon' }, /^estimate:/],
    [{ slots: 1, maxWaiting: -1 }, /^maxWaiting:/],
    [{ slots: 1, name: '' }, /^name:/],
    [{ slots: 1, concurrency: 4 }, /^concurrency: no such option/],
  ])('%j is refused by name', (options, message) => {
    expect(() => new DeadlineQueue(options)).toThrow(message)
  })

  test.each<[QueueRequest & { readonly clas?: string }, RegExp]>([
    [{ estimate: -1 }, /^estimate:/],
    [{ timeout: 'long' }, /^timeout:/],
    [{ reserve: Number.NaN }, /^reserve:/],
    [{ priority: Number.NaN }, /^priority:/],
    [{ operation: '' }, /^operation:/],
    [{ key: JSON.parse('7') }, /^key:/],
    [{ class: JSON.parse('7') }, /^class:/],
    [{ clas: 'free' }, /^clas: no such option/],
  ])('%j of a request is refused by name', async (request, message) => {
    const queue = new DeadlineQueue({ slots: 1 })
    await expect(queue.acquire(request)).rejects.toThrow(message)
    expect(queue.running).toBe(0)
  })
})
