import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { CancelledError, ClientClosedError, Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream, type UpstreamRequest } from '@timebudget/core/testing'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline, until } from '../support/calls.ts'
import { serveHttp } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'

/** Milliseconds until the upstream sees that its caller has gone; fails after a second. */
async function closedWithin(request: UpstreamRequest, since: number): Promise<number> {
  const left = await Promise.race([request.abandoned, pause(1_000).then(() => 'still open')])
  expect(left).toBe(true)
  return performance.now() - since
}

/** How a call ends before its answer does. */
export function endingsContract(client: ClientUnderTest): void {
  test('at the deadline the call fails with our error and its connection closes', async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({})
    await underDeadline(200, async (deadline) => {
      const failure = await failureOf(governed.call(upstream.url))
      const failedAt = performance.now()
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(causesOf(failure)).toContain(deadline.reason)
      expect(deadline.elapsed()).toBeGreaterThanOrEqual(200)
      expect(deadline.elapsed()).toBeLessThan(400)
      expect(onlyEntry(deadline)).toMatchObject({ name: client.operation, outcome: 'deadline_exceeded' })
      expect(await closedWithin(await upstream.nextRequest(), failedAt)).toBeLessThan(100)
    })
  })

  test('a body that stalls after its headers is cut off with our error and its connection closes', async () => {
    await using upstream = await slowUpstream({ startsAtOnce: true })
    await using governed = client.govern({})
    await underDeadline(200, async (deadline) => {
      const answer = await governed.call(upstream.url)
      expect(answer.status).toBe(200)
      expect(onlyEntry(deadline).outcome).toBeUndefined()
      const failure = await failureOf(answer.text())
      const failedAt = performance.now()
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
      expect(await closedWithin(await upstream.nextRequest(), failedAt)).toBeLessThan(100)
    })
  })

  test('an own timeout that is shorter than what is left is told from the deadline', async () => {
    await using upstream = await slowUpstream()
    await using governed = client.govern({ timeout: '150ms' })
    await underDeadline(5_000, async (deadline) => {
      const failure = await failureOf(governed.call(upstream.url))
      expect(codesOf(failure)).toContain('OPERATION_TIMEOUT')
      expect(deadline.reason).toBeUndefined()
      expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
      expect(await closedWithin(await upstream.nextRequest(), performance.now())).toBeLessThan(100)
    })
  })

  test('a timeout alone is kept without any deadline around', async () => {
    await using upstream = await slowUpstream({ startsAtOnce: true })
    await using governed = client.govern({ timeout: 150 })
    const begun = performance.now()
    const failure = await failureOf(governed.call(upstream.url).then((answer) => answer.text()))
    expect(codesOf(failure)).toContain('OPERATION_TIMEOUT')
    expect(performance.now() - begun).toBeLessThan(400)
    expect(await closedWithin(await upstream.nextRequest(), performance.now())).toBeLessThan(100)
  })

  test('below its floor a call is refused without a connection', async () => {
    await using server = await serveHttp((_request, response) => response.end())
    await using governed = client.govern({ floor: 600 })
    await underDeadline(500, async (deadline) => {
      expect(codesOf(await failureOf(governed.call(server.url)))).toContain('BUDGET_TOO_SMALL')
      expect(onlyEntry(deadline)).toMatchObject({ outcome: 'short_circuited', floor: 600 })
    })
    expect(server.connections).toBe(0)
  })

  test('under a deadline that has ended a call is refused without a connection', async () => {
    await using server = await serveHttp((_request, response) => response.end())
    await using governed = client.govern({})
    const past = Deadline.at(Date.now() - 1_000)
    const failure = await failureOf(runWithDeadline(past, () => governed.call(server.url)))
    expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
    expect(onlyEntry(past).outcome).toBe('deadline_exceeded')
    expect(server.connections).toBe(0)
  })

  test.each([
    { when: 'before the headers', startsAtOnce: false },
    { when: 'in the body', startsAtOnce: true },
  ])('a client that leaves $when ends the call, and that is no failure', async ({ startsAtOnce }) => {
    await using upstream = await slowUpstream({ startsAtOnce })
    await using governed = client.govern({})
    await underDeadline(5_000, async (deadline) => {
      const failed = failureOf(governed.call(upstream.url).then((answer) => answer.text()))
      const request = await upstream.nextRequest()
      await pause(20)
      const left = performance.now()
      deadline.cancel(new ClientClosedError('the client went away'))
      expect(codesOf(await failed)).toContain('CLIENT_CLOSED')
      expect(await closedWithin(request, left)).toBeLessThan(100)
      expect(onlyEntry(deadline).outcome).toBe('client_closed')
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
      expect(await closedWithin(request, performance.now())).toBeLessThan(100)
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

  test('two hundred calls of one request leave no listener, no timer and no warning behind', async () => {
    const warnings: Error[] = []
    const note = (warning: Error): unknown => warnings.push(warning)
    process.on('warning', note)
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    const timers = pendingTimers()
    await underDeadline(3_600_000, async (deadline) => {
      const { signal } = deadline
      const listeners = getEventListeners(signal, 'abort').length
      const callOnce = async (): Promise<string> => (await governed.call(upstream.url)).text()
      for (let call = 0; call < 50; call += 1) await callOnce()
      await Promise.all(Array.from({ length: 150 }, callOnce))
      await pause(5)
      expect(getEventListeners(signal, 'abort')).toHaveLength(listeners)
      expect(signal.aborted).toBe(false)
      expect(deadline.ledger.entries.filter(({ outcome }) => outcome === 'ok')).toHaveLength(200)
    })
    expect(pendingTimers()).toBeLessThanOrEqual(timers)
    process.off('warning', note)
    expect(warnings).toEqual([])
  })

  test('a success is not followed by an abort', async () => {
    await using upstream = await slowUpstream({ delay: 0 })
    await using governed = client.govern({})
    const warnings: unknown[] = []
    const note = (reason: unknown): unknown => warnings.push(reason)
    process.on('unhandledRejection', note)
    await underDeadline(500, async (deadline) => {
      expect(await (await governed.call(upstream.url)).text()).toBe('done')
      await until(() => deadline.expired)
      await pause(20)
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
    process.off('unhandledRejection', note)
    expect(warnings).toEqual([])
  })

  test('a child narrower than the request ends its calls only', async () => {
    await using upstream = await slowUpstream()
    await using quick = await slowUpstream({ delay: 150 })
    await using governed = client.govern({})
    await underDeadline(3_000, async (deadline) => {
      const narrow = deadline.child({ timeout: 80 })
      const cut = failureOf(runWithDeadline(narrow, () => governed.call(upstream.url)))
      const other = governed.call(quick.url).then((answer) => answer.text())
      expect(causesOf(await cut)).toContain(narrow.reason)
      expect(await other).toBe('done')
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

function pendingTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
}
