import { Deadline, type RunningOperation, startOperation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { learnedFloor, type LearnedFloorOptions } from '../src/index.ts'
import { logNormal, seededRandom } from './support/seeded-random.ts'

interface Second {
  starts: number
  refused: number
  ok: number
}

const healthyAtFirst = 60
const outageFor = 120
const watchedFor = 180

/** Twenty calls a second, of about 100 ms, ten times as long during the outage; what happened in each second. */
function outage(options: LearnedFloorOptions, healthyFor: number): Second[] {
  const clock = new ManualClock()
  const random = seededRandom(4)
  const floor = learnedFloor('search', { mode: 'enforce', cap: null, clock, random, ...options })
  const seconds: Second[] = []
  for (let second = 0; second < healthyFor + outageFor + watchedFor; second += 1) {
    const seen = { starts: 0, refused: 0, ok: 0 }
    seconds.push(seen)
    const slower = second >= healthyFor && second < healthyFor + outageFor ? 10 : 1
    for (let start = 0; start < 20; start += 1) {
      clock.advance(50)
      const takes = slower * logNormal(random, { median: 100, sigma: 0.4 })
      const deadline = Deadline.after(250 + random() * 150, { clock })
      seen.starts += 1
      try {
        const running: RunningOperation = startOperation('search', { floor, deadline })
        clock.wakeAfter(takes, () => {
          if (running.end() === undefined) seen.ok += 1
        })
      } catch {
        seen.refused += 1
      }
    }
  }
  return seconds
}

function share(seconds: readonly Second[], what: 'refused' | 'ok'): number {
  const sum = (key: keyof Second): number => seconds.reduce((total, second) => total + second[key], 0)
  return sum(what) / sum('starts')
}

test.each<[string, LearnedFloorOptions]>([
  ['the chance of finishing', {}],
  ['a 95th percentile', { quantile: 0.95 }],
])('a floor by %s refuses during an outage and admits all within one window after it', (_, options) => {
  const seconds = outage(options, healthyAtFirst)
  const outageEnds = healthyAtFirst + outageFor
  const healthy = seconds.slice(10, healthyAtFirst)
  const late = seconds.slice(healthyAtFirst + 60, outageEnds)
  const after = seconds.slice(outageEnds + 60)
  expect(share(healthy, 'ok')).toBeGreaterThan(0.97)
  expect(share(late, 'refused')).toBeGreaterThan(0.9)
  expect(share(after, 'refused')).toBe(0)
  expect(share(after, 'ok')).toBeGreaterThan(0.97)
})

test('where the window is long, exploring lets the traffic back in sooner', () => {
  const refusedSoonAfter = (explore: number): number =>
    share(outage({ explore, window: '1h' }, 0).slice(outageFor, outageFor + 60), 'refused')
  expect(refusedSoonAfter(0)).toBeGreaterThan(0.9)
  expect(refusedSoonAfter(0.05)).toBeLessThan(0.4)
})
