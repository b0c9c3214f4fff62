import { type Fetch, wrapFetch } from '@timebudget/clients/fetch'

/** Whether this process keeps to a time budget; `TIMEBUDGET=off` shows the same chain without. */
export const budgeted: boolean = process.env['TIMEBUDGET'] !== 'off'

/** A service that another one calls. */
export interface Upstream {
  readonly name: string
  readonly url: string
  /** The most one call may take, in ms. */
  readonly timeout: number
  /** The least time left, in ms, with which a call is worth starting. */
  readonly floor?: number
}

/** An upstream gave no usable answer; status and headers are what its caller should answer. */
export class UpstreamFailed extends Error {
  readonly status: 502 | 504
  readonly headers: Readonly<Record<string, string>>

  constructor(
    message: string,
    answer: { status: 502 | 504; headers?: Record<string, string>; cause?: unknown },
  ) {
    super(message, { cause: answer.cause })
    this.status = answer.status
    this.headers = answer.headers ?? {}
  }
}

/** A function that posts JSON to the upstream and gives its JSON answer; rejects with UpstreamFailed or a TimeBudgetError. */
export function upstream(
  target: Upstream,
): (body: unknown, headers?: Record<string, string>) => Promise<unknown> {
  const send = budgeted ? withBudget(target) : withStaticTimeout(target)
  return async function post(body, headers = {}) {
    const response = await send(target.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    if (response.ok) return response.json()
    await response.body?.cancel()
    throw refused(target.name, response)
  }
}

function refused(name: string, { status, headers }: Response): UpstreamFailed {
  const outcome = headers.get('x-deadline-outcome')
  return new UpstreamFailed(`${name} answered ${status}`, {
    status: status === 504 ? 504 : 502,
    headers: outcome === null ? {} : { 'x-deadline-outcome': outcome },
  })
}

function withBudget({ name, timeout, floor = 0 }: Upstream): Fetch {
  return wrapFetch(fetch, { operation: name, timeout, floor })
}

function withStaticTimeout({ name, timeout }: Upstream): Fetch {
  return async function fetchWithTimeout(input, init) {
    const signal = AbortSignal.timeout(timeout)
    return fetch(input, { ...init, signal }).catch((cause: unknown) => {
      throw new UpstreamFailed(`${name} gave no answer`, { status: signal.aborted ? 504 : 502, cause })
    })
  }
}
