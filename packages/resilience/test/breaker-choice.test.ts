import * as cockatiel3 from 'cockatiel'
import * as cockatiel4 from 'cockatiel4'
import { afterEach, expect, test, vi } from 'vitest'

type Cockatiel = typeof cockatiel3

// of version 4 only what both have alike is used here
const versions: ReadonlyArray<[string, Cockatiel]> = [
  ['cockatiel 3', cockatiel3],
  ['cockatiel 4', cockatiel4 as unknown as Cockatiel],
]

const pause = 3_000

function down(): never {
  throw new Error('down')
}

/** A policy with its pause over, for which only the error `down` is a failure. */
function afterItsPause({ circuitBreaker, ConsecutiveBreaker, handleWhen }: Cockatiel) {
  const policy = circuitBreaker(
    handleWhen((error) => error.message === 'down'),
    { halfOpenAfter: pause, breaker: new ConsecutiveBreaker(2) },
  )
  const failTwice = async (): Promise<void> => {
    for (let i = 0; i < 2; i += 1) await policy.execute(down).catch(() => undefined)
    vi.setSystemTime(Date.now() + pause)
  }
  return { policy, failTwice }
}

afterEach(() => {
  vi.useRealTimers()
})

// What a guard around cockatiel cannot mend, and why the circuit is our own. Red here: think again.
test.each(versions)('%s measures the pause by the wall clock', async (_, cockatiel) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { policy, failTwice } = afterItsPause(cockatiel)
  await failTwice()
  vi.setSystemTime(Date.now() - 3_600_000)
  await expect(policy.execute(() => 'ok')).rejects.toThrow('circuit breaker is open')
})

test.each(versions)('%s closes when a probe is given up that is no failure', async (_, cockatiel) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { policy, failTwice } = afterItsPause(cockatiel)
  await failTwice()
  await policy
    .execute(() => {
      throw new Error('the user left')
    })
    .catch(() => undefined)
  expect(policy.state).toBe(cockatiel.CircuitState.Closed)
})

test.each(versions)('%s lets a call from before the outage judge the probe', async (_, cockatiel) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { policy, failTwice } = afterItsPause(cockatiel)
  let failLate: (error: Error) => void = () => undefined
  const old = policy
    .execute(() => new Promise((_resolve, reject) => (failLate = reject)))
    .catch(() => undefined)
  await failTwice()
  let succeed: (value: string) => void = () => undefined
  const probe = policy.execute(() => new Promise((resolve) => (succeed = resolve)))
  failLate(new Error('down'))
  await old
  succeed('ok')
  await probe
  expect(policy.state).toBe(cockatiel.CircuitState.Open)
})

test.each(versions)('%s never takes its slot back from a probe that hangs', async (_, cockatiel) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { policy, failTwice } = afterItsPause(cockatiel)
  await failTwice()
  const controller = new AbortController()
  void policy.execute(() => new Promise(() => undefined), controller.signal)
  controller.abort()
  vi.setSystemTime(Date.now() + 3_600_000)
  let settled = false
  void policy.execute(() => 'ok').finally(() => (settled = true))
  await new Promise((resolve) => setImmediate(resolve))
  expect(settled).toBe(false)
  expect(policy.state).toBe(cockatiel.CircuitState.HalfOpen)
})
