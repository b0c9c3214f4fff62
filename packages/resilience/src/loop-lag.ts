import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  type Clock,
  type Duration,
  loopLagged,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
} from '@timebudget/core'
import { finiteDurationAboveZero } from './option-values.ts'

/** What is worth saying of the event loop's lag. */
export interface LoopLagOptions {
  /** Nothing less is published; `'100ms'`. */
  readonly threshold?: Duration | undefined
  /** How often one looks, and so how often it is published at most; `'1s'`. */
  readonly interval?: Duration | undefined
  readonly clock?: Clock | undefined
}

/** A watch that goes on until it is stopped; keeps no process alive. */
export interface LoopLagWatch {
  stop(): void
  [Symbol.dispose](): void
}

// Costs 0.5 to 0.7 % of an otherwise idle core, half of what a timer in JavaScript does (measured, Node 20 to 26).
const resolution = 20

const optionNames: Readonly<Record<keyof LoopLagOptions, true>> = {
  threshold: true,
  interval: true,
  clock: true,
}

/**
 * Publishes `loopLagged` with the longest time for which the event loop was blocked in each interval, from `threshold`
 * on: until it turns again no timer fires, so no deadline is kept.
 *
 *     using watch = watchLoopLag({ threshold: '100ms' })
 *     loopLagged.subscribe(({ lag }) => log.warn(`the event loop was blocked for ${lag} ms`))
 *
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export function watchLoopLag(options: LoopLagOptions = {}): LoopLagWatch {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const threshold = parseDuration(options.threshold ?? '100ms', 'threshold')
  const interval = finiteDurationAboveZero(options.interval ?? '1s', 'interval')
  const clock = options.clock ?? systemClock

  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  let due = clock.now() + interval
  let timer = clock.wakeAfter(interval, look)

  function look(): void {
    // the monitor's own timer may not have run yet after a block that is just over; ours has
    const lag = Math.max(delays.max / 1e6 - resolution, clock.now() - due)
    if (lag >= threshold) {
      loopLagged.publish(() => ({ lag }))
      // only now: whatever blocks within one resolution after a reset goes unseen
      delays.reset()
    }
    due = clock.now() + interval
    timer = clock.wakeAfter(interval, look)
  }

  function stop(): void {
    timer.cancel()
    delays.disable()
  }
  return { stop, [Symbol.dispose]: stop }
}
