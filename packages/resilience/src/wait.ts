import { type Clock, type ClockTimer, type Deadline, systemClock } from '@timebudget/core'

/** What a wait stands under. */
export interface WaitOptions {
  /** Ends the wait, too; none by default. */
  readonly deadline?: Deadline | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/**
 * Waits that many milliseconds and not less, unless the deadline ends first: then it rejects at once with the deadline's
 * reason. However it ends, it leaves no timer and no listener.
 */
export async function waitUnder(
  milliseconds: number,
  { deadline, clock = systemClock }: WaitOptions = {},
): Promise<void> {
  const ended = deadline?.reason
  if (ended !== undefined) throw ended
  if (!(milliseconds > 0)) return
  const until = clock.now() + milliseconds
  const signal = deadline?.signal
  await new Promise<void>((resolve, reject) => {
    let timer: ClockTimer | undefined
    const settle = (): void => {
      signal?.removeEventListener('abort', settle)
      timer?.cancel()
      const reason = deadline?.reason
      if (reason === undefined) resolve()
      else reject(reason)
    }
    const wake = (): void => {
      const left = until - clock.now()
      // timers fire up to a millisecond early, and after 24 days whatever was asked of them
      if (left > 0 && deadline?.reason === undefined) timer = keptAwake(clock, left, wake)
      else settle()
    }
    signal?.addEventListener('abort', settle)
    timer = keptAwake(clock, milliseconds, wake)
  })
}

/** A timer that keeps the process alive, since somebody awaits what it will do. */
function keptAwake(clock: Clock, delay: number, wake: () => void): ClockTimer {
  // an infinite one is as good as none, and Node would fire it at once
  const timer = clock.wakeAfter(Math.min(Math.ceil(delay), Number.MAX_SAFE_INTEGER), wake)
  timer.hold()
  return timer
}
