import { ClientClosedError, Deadline, operationFinished, queueJudged, UpstreamError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { describe, expect, test } from 'vitest'
import { DeadlineQueue } from '../src/index.ts'
import { atRest, Scene } from './support/queue.ts'

describe('a slot is free again', () => {
  test.each([
    ['returns', () => 'done'],
    ['resolves', () => Promise.resolve('done')],
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws at once',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects with nothing', () => Promise.reject()],
  ])('when its work %s', async (_, work) => {
    const queue = new DeadlineQueue({ slots: 1 })
    await queue.run(work).catch(() => undefined)
    expect(queue.running).toBe(0)
    await expect(queue.run(() => 'next')).resolves.toBe('next')
  })

  test('at the deadline when its work never settles and ignores its signal', async () => {
    const scene = new Scene({ slots: 1 })
    const stuck = scene.queue.run(() => new Promise(() => undefined), { deadline: scene.deadline(300) })
    stuck.catch(() => undefined)
    const next = scene.come()
    await scene.turn(299)
    expect(next.state).toBe('waiting')
    await scene.turn(1)
    await expect(stuck).rejects.toMatchObject({ outcome: 'deadline_exceeded' })
    expect(next.state).toBe('holding')
  })

  test('at its own timeout when there is no deadline', async () => {
    const queue = new DeadlineQueue({ slots: 1 })
    const stuck = queue.run(() => new Promise(() => undefined), { timeout: 30 })
    await expect(stuck).rejects.toMatchObject({ outcome: 'operation_timeout' })
    expect(queue.running).toBe(0)
  })

  test('when the client of its work leaves', async () => {
    const scene = new Scene({ slots: 1 })
    const deadline = scene.deadline(9000)
    const work = scene.queue.run(() => new Promise(() => undefined), { deadline })
    work.catch(() => undefined)
    const next = scene.come()
    deadline.cancel(new ClientClosedError('the client has left'))
    await expect(work).rejects.toMatchObject({ outcome: 'client_closed' })
    await atRest()
    expect(next.state).toBe('holding')
  })

  test('once, however often it is given back', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const first = scene.come()
    const second = scene.come()
    holder?.slot?.release()
    holder?.slot?.release()
    holder?.slot?.[Symbol.dispose]()
    await atRest()
    expect([first.state, second.state].sort()).toEqual(['holding', 'waiting'])
    expect(scene.queue.running).toBe(1)
  })

  test('when it is disposed of', async () => {
    const queue = new DeadlineQueue({ slots: 1 })
    {
      using slot = await queue.acquire()
      expect(queue.running).toBe(1)
      expect(slot.signal.aborted).toBe(false)
    }
    expect(queue.running).toBe(0)
  })

  test('at the deadline when who acquired it never gives it back, and giving it back later changes nothing', async () => {
    const scene = new Scene({ slots: 1 })
    const forgetful = scene.come({ budget: 300 })
    await atRest()
    const next = scene.come({ budget: 9000 })
    await scene.turn(300)
    expect(next.state).toBe('holding')
    expect(forgetful.slot?.signal.reason).toMatchObject({ outcome: 'deadline_exceeded' })
    await scene.release(forgetful)
    expect(scene.queue.running).toBe(1)
  })

  test('when its holder is cancelled in the moment between the grant and the news of it', async () => {
    const scene = new Scene({ slots: 2 })
    const holders = await scene.fill()
    const unlucky = scene.deadline(9000)
    let ran = false
    const acquiring = scene.come({ deadline: unlucky })
    const running = scene.queue.run(() => (ran = true), { deadline: unlucky })
    running.catch(() => undefined)
    for (const { slot } of holders) slot?.release()
    expect(scene.queue).toMatchObject({ running: 2, waiting: 0 })
    unlucky.cancel()
    await expect(running).rejects.toMatchObject({ outcome: 'cancelled' })
    await atRest()
    expect(acquiring.error).toMatchObject({ outcome: 'cancelled' })
    expect(ran).toBe(false)
    expect(scene.queue).toMatchObject({ running: 0, waiting: 0 })
  })

  test('when the start of its work is refused', async () => {
    const scene = new Scene({ slots: 1 })
    const refused = scene.queue.run(() => 'never', { deadline: scene.deadline(100), floor: 200 })
    await expect(refused).rejects.toMatchObject({ outcome: 'short_circuited' })
    expect(scene.queue.running).toBe(0)
  })

  test('when who listens to the end of work asks for a slot itself', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const waiting = scene.come({ operation: 'waiting' })
    let nested: ReturnType<Scene['come']> | undefined
    const unsubscribe = operationFinished.subscribe(({ entry }) => {
      if (entry.name === 'queue-wait') nested ??= scene.come({ operation: 'nested' })
    })
    await scene.release(holder)
    unsubscribe()
    expect([waiting.state, nested?.state]).toEqual(['holding', 'waiting'])
    expect(scene.queue.running).toBe(1)
    await scene.release(waiting)
    expect(nested?.state).toBe('holding')
  })

  test('when who listens to refusals brings more classes than are told apart', async () => {
    const scene = new Scene({ slots: 1, maxWaiting: 1 })
    const [holder] = await scene.fill()
    scene.come({ class: 'a', budget: 9000 })
    const unsubscribe = operationFinished.subscribe(({ entry }) => {
      if (entry.outcome !== 'shed') return
      unsubscribe()
      for (let index = 0; index < 100; index += 1) scene.come({ class: `more ${index}` })
    })
    const displacing = scene.come({ class: 'a', budget: 9000 })
    await scene.release(holder)
    expect(displacing.state).toBe('holding')
  })

  test('and whoever listens to the refusal of another does not get it before those who wait', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    const [holder] = await scene.fill()
    await scene.turn(900)
    scene.come({ budget: 2000 }) // will come too late
    const waiting = scene.come({ budget: 9000 })
    let overtaking: ReturnType<Scene['come']> | undefined
    const unsubscribe = queueJudged.subscribe(({ decision }) => {
      if (decision === 'shed') overtaking ??= scene.come({ budget: 9000 })
    })
    await scene.turn(1500)
    await scene.release(holder)
    unsubscribe()
    expect([waiting.state, overtaking?.state]).toEqual(['holding', 'waiting'])
  })

  test('and what the work failed with is in the ledger when release is told of it', async () => {
    const scene = new Scene({ slots: 1 })
    const deadline = scene.deadline(900)
    const caller = scene.come({ deadline, operation: 'stream' })
    await atRest()
    caller.slot?.release(new UpstreamError('the stream broke'))
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['upstream_error'])
  })
})

describe('who waits', () => {
  test('hears at the deadline, never gets a slot, and leaves no place and no timer behind', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    let ran = false
    const run = scene.queue.run(() => (ran = true), { deadline: scene.deadline(400) })
    run.catch(() => undefined)
    await scene.turn(400)
    await expect(run).rejects.toMatchObject({ outcome: 'deadline_exceeded' })
    expect(scene.queue.waiting).toBe(0)
    expect(scene.clock.pendingTimers).toBe(0)
    await scene.release(holder)
    expect(ran).toBe(false)
    expect(scene.events.map(({ decision, waited }) => [decision, waited])).toEqual([
      ['admitted', 0],
      ['left', 400],
    ])
  })

  test('hears at once when its signal aborts, which then holds no listener of the queue', async () => {
    const scene = new Scene({ slots: 1 })
    const [holder] = await scene.fill()
    const left = new AbortController()
    const stays = new AbortController()
    const leaver = scene.come({ signal: left.signal })
    const stayer = scene.come({ signal: stays.signal })
    left.abort('stop')
    await atRest()
    expect(leaver).toMatchObject({ state: 'refused', error: { outcome: 'cancelled', cause: 'stop' } })
    await scene.release(holder)
    await scene.release(stayer)
    expect(scene.queue).toMatchObject({ running: 0, waiting: 0 })
    stays.abort('too late to matter')
    await atRest()
    expect(scene.queue).toMatchObject({ running: 0, waiting: 0 })
  })

  test('and has a deadline that nobody could tell of, since the loop was blocked, is not started after it', async () => {
    const scene = new Scene({ slots: 1, estimate: 10 })
    const [holder] = await scene.fill()
    const late = scene.come({ budget: 300 })
    const next = scene.come({ budget: 9000 })
    await atRest()
    scene.clock.block(400)
    await scene.release(holder)
    expect(late.error).toMatchObject({ outcome: 'deadline_exceeded' })
    expect(next.state).toBe('holding')
    expect(scene.events.map(({ decision }) => decision)).toEqual(['admitted', 'left', 'admitted'])
  })

  test('cannot starve others by being aborted: their places are free at once', async () => {
    const scene = new Scene({ slots: 1, estimate: 10, maxWaiting: 2 })
    await scene.fill()
    const one = scene.deadline(5000)
    const other = scene.deadline(5000)
    const aborted = [scene.come({ deadline: one }), scene.come({ deadline: other })]
    one.cancel()
    other.cancel()
    const live = scene.come({ budget: 5000 })
    await atRest()
    expect(aborted.map(({ state }) => state)).toEqual(['refused', 'refused'])
    expect(live.state).toBe('waiting')
  })

  test('is refused with the reason, not as overload, once the deadline has ended', async () => {
    const scene = new Scene({ slots: 1, estimate: 1000 })
    await scene.fill()
    const deadline = scene.deadline(5000)
    deadline.cancel(new ClientClosedError('the client has left'))
    const caller = scene.come({ deadline })
    await atRest()
    expect(caller.error).toMatchObject({ outcome: 'client_closed' })
  })

  test('ends in one of four ways that nobody can mix up: shed, out of time, client gone, failed upstream', async () => {
    const clock = new ManualClock()
    const scene = new Scene({ slots: 1, estimate: 1000, clock })
    const outcomes: string[] = []
    const unsubscribe = operationFinished.subscribe(({ entry }) =>
      outcomes.push(`${entry.name} ${entry.outcome}`),
    )
    const deadlines = [1500, 8000, 9000, 9500].map((budget) => Deadline.after(budget, { clock }))
    const holder = scene.come()
    await atRest()
    scene.come({ deadline: deadlines[0] }) // 1 s to wait and 1 s to work
    const inTime = scene.come({ deadline: deadlines[1] })
    scene.come({ deadline: deadlines[2] })
    scene.queue
      .run(() => Promise.reject(new UpstreamError('too slow')), { deadline: deadlines[3], operation: 'call' })
      .catch(() => undefined)
    await scene.turn(100)
    deadlines[2]?.cancel(new ClientClosedError('the client has left'))
    await scene.turn(7900)
    await scene.release(holder)
    unsubscribe()
    expect(inTime.state).toBe('refused')
    expect(outcomes.filter((outcome) => !outcome.endsWith(' ok'))).toEqual([
      'queue-wait shed',
      'queue-wait client_closed',
      'queue-wait deadline_exceeded',
      'call upstream_error',
    ])
    expect(scene.events.map(({ decision }) => decision)).toEqual([
      'admitted',
      'shed',
      'left',
      'left',
      'admitted',
    ])
  })
})
