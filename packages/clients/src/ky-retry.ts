import type { Deadline, Floor } from '@timebudget/core'
import type { HTTPError, Options } from 'ky'

type RetryOptions = Exclude<NonNullable<Options['retry']>, number>
type ShouldRetry = NonNullable<RetryOptions['shouldRetry']>
type BeforeRetry = NonNullable<NonNullable<Options['hooks']>['beforeRetry']>[number]

interface CallOptions {
  readonly init: Options
  readonly defaults: Options
  readonly floor: Floor | undefined
}

/** Options with which ky does not wait for a retry that comes too late, but fails at once with what it failed of. */
export function retryWithin(
  deadline: Deadline,
  { init, defaults, floor = 0 }: CallOptions,
): Pick<Options, 'retry' | 'hooks'> {
  const retry = { ...asObject(defaults.retry), ...asObject(init.retry) }
  const leavesEnoughAfter = (pause: number): boolean => {
    try {
      deadline.child({ reserve: pause > 0 ? pause : 0 }).assertRemaining(floor)
      return true
    } catch {
      return false
    }
  }
  const shouldRetry: ShouldRetry = (attempt) =>
    leavesEnoughAfter(pauseBefore(attempt, retry)) ? retry.shouldRetry?.(attempt) : false
  const beforeRetry: BeforeRetry = ({ error }) => {
    if (!leavesEnoughAfter(0)) throw error
  }
  return {
    // what stands in `defaults` is added by ky, unless it is a number, which ours would replace
    retry: {
      ...(typeof defaults.retry === 'number' ? { limit: defaults.retry } : {}),
      ...asObject(init.retry),
      shouldRetry,
    },
    hooks: { ...init.hooks, beforeRetry: [...(init.hooks?.beforeRetry ?? []), beforeRetry] },
  }
}

function asObject(retry: Options['retry']): RetryOptions {
  return typeof retry === 'number' ? { limit: retry } : (retry ?? {})
}

/** How long ky will wait, as far as that can be told; `Infinity` if waiting is no use. */
function pauseBefore({ error, retryCount }: Parameters<ShouldRetry>[0], retry: RetryOptions): number {
  const response = isHttpError(error) ? error.response : undefined
  // the peer has had all the time there is
  if (response?.headers.get('x-deadline-outcome') === 'deadline_exceeded') return Infinity
  const demanded = retryAfter(response, retry)
  if (demanded !== undefined) return Math.min(demanded, retry.maxRetryAfter ?? Infinity)
  if (retry.jitter !== undefined && retry.jitter !== false) return 0
  const pause = retry.delay === undefined ? 300 * 2 ** (retryCount - 1) : retry.delay(retryCount)
  return Math.min(pause, retry.backoffLimit ?? Infinity)
}

/** ky's own default: with which statuses the header counts. */
const afterStatusCodes: readonly number[] = [413, 429, 503]

function retryAfter(response: Response | undefined, retry: RetryOptions): number | undefined {
  const value = response?.headers.get('retry-after')
  if (response === undefined || value === null || value === undefined) return undefined
  if (!(retry.afterStatusCodes ?? afterStatusCodes).includes(response.status)) return undefined
  const seconds = Number(value)
  const pause = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000
  return Number.isNaN(pause) ? undefined : pause
}

function isHttpError(error: Error): error is HTTPError {
  return error.name === 'HTTPError' && 'response' in error
}
