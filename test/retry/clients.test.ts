import { attachDeadline } from '@timebudget/clients/axios'
import { fetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import { get } from '@timebudget/clients/node-http'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { breaker, retry, type RetryOptions, retryEndOf } from '@timebudget/resilience'
import axios from 'axios'
import got from 'got'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { Agent, request as undiciRequest } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'
import { flakyFor, listen, nowhere } from './flaky-server.ts'

type Call = (url: string) => Promise<unknown>

const axiosInstance = axios.create()
attachDeadline(axiosInstance)
const gotInstance = got.extend(deadlineHooks(), { retry: { limit: 0 } })

// What each gives back is its body, so that a retry which returns has read the good answer.
const clients: readonly (readonly [string, () => Call])[] = [
  ['fetch', () => async (url) => (await mustBeGood(await fetch(url))).text()],
  [
    'undici',
    () => {
      const agent = new Agent().compose(deadlineInterceptor())
      onTestFinished(() => agent.destroy())
      return async (url) => {
        const { statusCode, body, headers } = await undiciRequest(url, { dispatcher: agent })
        if (statusCode === 200) return body.text()
        await body.dump()
        throw Object.assign(new Error('no good answer'), { statusCode, headers })
      }
    },
  ],
  ['node:http', () => nodeHttpCall],
  ['axios', () => async (url) => (await axiosInstance.get<string>(url)).data],
  ['got', () => async (url) => (await gotInstance(url)).body],
]

async function nodeHttpCall(url: string): Promise<string> {
  const outgoing = get(url)
  const [answer]: [IncomingMessage] = (await once(outgoing, 'response')) as [IncomingMessage]
  if (answer.statusCode === 200) return text(answer)
  answer.resume()
  throw Object.assign(new Error('no good answer'), { statusCode: answer.statusCode, headers: answer.headers })
}

async function mustBeGood(response: Response): Promise<Response> {
  if (response.ok) return response
  await response.body?.cancel()
  throw Object.assign(new Error('no good answer'), { status: response.status, headers: response.headers })
}

const quick: RetryOptions<unknown> = { backoff: { initial: 5 }, budget: null }

describe.each(clients)('%s', (_, makeCall) => {
  test('is asked again after a 503, says which attempt it is, and its answer is whole', async () => {
    const call = makeCall()
    const peer = await flakyFor(2)
    const deadline = Deadline.after('10s')
    const answer = await runWithDeadline(deadline, () => retry(() => call(peer.url), quick))
    expect(answer).toBe('here')
    expect(peer.attempts).toEqual([undefined, '2', '3'])
    const outcomes = deadline.ledger.entries
      .filter(({ name }) => name === 'retry')
      .map(({ outcome }) => outcome)
    expect(outcomes.at(-1)).toBe('ok')
    expect(outcomes).toHaveLength(3)
    expect(outcomes.slice(0, 2)).not.toContain('ok')
  })

  test('is not asked again within an attempt that repeats another', async () => {
    const call = makeCall()
    const peer = await flakyFor(9)
    const inner = (): Promise<unknown> => retry(() => call(peer.url), quick)
    const failed = await runWithDeadline(Deadline.after('10s'), () => retry(inner, quick)).catch(
      (error: unknown) => error,
    )
    expect(failed).toBeInstanceOf(Error)
    expect(peer.attempts).toEqual([undefined, '2', '3', '2', '3'])
  })

  test('that hears nothing is given up at the deadline, and its connection closes', async () => {
    const call = makeCall()
    const peer = await listen((request) => void request.resume())
    const begun = performance.now()
    const failed: unknown = await runWithDeadline(Deadline.after(200), () =>
      retry(() => call(peer.url), { ...quick, timeout: 120 }),
    ).catch((error: unknown) => error)
    expect(performance.now() - begun).toBeLessThan(1_500)
    expect(failed).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(retryEndOf(failed)).toMatchObject({ stop: 'no_time' })
    for (const { socket } of peer.requests) if (!socket.destroyed) await once(socket, 'close')
  })

  test('that finds nobody listening is asked again, also where the work may not be repeated', async () => {
    const call = makeCall()
    const url = await nowhere()
    let attempts = 0
    const failed: unknown = await runWithDeadline(Deadline.after('10s'), () =>
      retry(
        () => {
          attempts += 1
          return call(url)
        },
        { ...quick, idempotent: false },
      ),
    ).catch((error: unknown) => error)
    expect(retryEndOf(failed)).toEqual({ stop: 'no_attempts', attempts: 3 })
    expect(attempts).toBe(3)
  })

  test('opens the breaker around it by its failures, after which it is not asked at all', async () => {
    const call = makeCall()
    const peer = await flakyFor(99)
    const search = breaker('search', { failures: 3 })
    const ask = (): Promise<unknown> => retry(() => search.run(() => call(peer.url)), quick)
    await runWithDeadline(Deadline.after('10s'), ask).catch(() => undefined)
    const refused: unknown = await runWithDeadline(Deadline.after('10s'), ask).catch(
      (error: unknown) => error,
    )
    expect(refused).toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(peer.attempts).toHaveLength(3)
  })

  test('whose user leaves is asked once, and the breaker around it stays closed', async () => {
    const call = makeCall()
    const left = new AbortController()
    const peer = await listen((request) => {
      request.resume()
      left.abort('stop')
    })
    const search = breaker('search', { failures: 1 })
    const deadline = Deadline.after('10s', { signal: left.signal })
    const failed: unknown = await runWithDeadline(deadline, () =>
      retry(() => search.run(() => call(peer.url)), quick),
    ).catch((error: unknown) => error)
    expect(failed).toMatchObject({ outcome: 'cancelled', cause: 'stop' })
    expect(peer.requests).toHaveLength(1)
    expect(search.state).toBe('closed')
  })
})
