import { expect, test } from 'vitest'
import { CancelledError } from '@timebudget/core'
import { slowUpstream, type UpstreamRequest } from '@timebudget/core/testing'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline, until } from '../support/calls.ts'
import { timeOf } from '../support/time-of.ts'
import type { ClientUnderTest } from './client-under-test.ts'

/** Milliseconds until the upstream sees that its caller has gone; fails after a second. */
async function closedWithin(request: UpstreamRequest): Promise<number> {
  const left = Promise.race([request.abandoned, pause(1_000).then(() => 'still open')])
  const taken = await timeOf(left)
  expect(await left).toBe(true)
  return taken
}

/** How a call of HTTP ends. */
export function endingsContract(client: ClientUnderTest): void {
  test('an answer whose body is still to come is not over', async () => {
    await using upstream = await slowUpstream({ startsAtOnce: true, delay: 50 })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const answer = await governed.call(upstream.url)
      expect(answer.status).toBe(200)
      expect(onlyEntry(deadline).outcome).toBeUndefined()
      expect(await answer.text()).toBe('begun done')
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
  })

  test.each([
    { when: 'before the headers', startsAtOnce: false },
    { when: 'in the body', startsAtOnce: true },
  ])("the caller's own signal ends the call $when with the caller's own reason", async ({ startsAtOnce }) => {
    await using upstream = await slowUpstream({ startsAtOnce })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const [controller, reason] = [new AbortController(), new Error('changed my mind')]
      const failed = failureOf(
        governed.call(upstream.url, { signal: controller.signal }).then((answer) => answer.text()),
      )
      const request = await upstream.nextRequest()
      await pause(20)
      controller.abort(reason)
      const failure = await failed
      expect(causesOf(failure)).toContain(reason)
      expect(codesOf(failure)).not.toContain('UPSTREAM_ERROR')
      expect(await closedWithin(request)).toBeLessThan(100)
      expect(onlyEntry(deadline).outcome).toBe('cancelled')
    })
  })

  test('of the deadline and the own signal the first one counts', async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({})
    const late = new AbortController()
    await underDeadline(100, async (deadline) => {
      const failure = await failureOf(governed.call(upstream.url, { signal: late.signal }))
      late.abort(new Error('too late to matter'))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
    const [early, reason] = [new AbortController(), new Error('changed my mind')]
    await underDeadline(150, async (deadline) => {
      const failed = failureOf(governed.call(upstream.url, { signal: early.signal }))
      setTimeout(() => early.abort(reason), 50)
      expect(causesOf(await failed)).toContain(reason)
      await until(() => deadline.expired)
      expect(onlyEntry(deadline).outcome).toBe('cancelled')
    })
  })

  test('a signal that has aborted already lets no request out', async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({})
    await underDeadline(1_000, async () => {
      const reason = new Error('changed my mind before')
      const failure = await failureOf(governed.call(upstream.url, { signal: AbortSignal.abort(reason) }))
      expect(causesOf(failure)).toContain(reason)
    })
    expect(upstream.requests).toHaveLength(0)
  })

  test("the signal of a request's deadline may be passed on by hand", async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({})
    await underDeadline(150, async (deadline) => {
      const failure = await failureOf(governed.call(upstream.url, { signal: deadline.signal }))
      expect(causesOf(failure)).toContain(deadline.reason)
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  })

  test.runIf(client.isBounded)('a call that waits for a connection ends at its own deadline', async () => {
    await using upstream = await slowUpstream({ delay: 700 })
    await using governed = client.govern({ connections: 1 })
    const long = underDeadline(60_000, async () => (await governed.call(upstream.url)).text())
    await upstream.nextRequest()
    await underDeadline(200, async (deadline) => {
      const failure = await failureOf(governed.call(upstream.url))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(causesOf(failure)).not.toContainEqual(expect.any(CancelledError))
      expect(deadline.elapsed()).toBeLessThan(400)
    })
    expect(await long).toBe('done')
    expect(upstream.requests).toHaveLength(1)
  })
}
