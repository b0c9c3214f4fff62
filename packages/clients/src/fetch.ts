import { type RunningOperation, waitOutTheEdge } from '@timebudget/core'
import { failureOf, isOutOfTime } from './failure.ts'
import { asRequest, type Fetch, type Followed, followUnderDeadline, readRequest } from './followed-fetch.ts'
import {
  type ClientOptions,
  deadlineOfCall,
  isBounded,
  outcomeOfAnswer,
  type PeerAnswer,
  resolveClientOptions,
  startCall,
} from './outgoing.ts'
import { tieOperation } from './operation-behind.ts'
import { watchBody } from './watched-body.ts'

export type { ClientOptions, Fetch }
export { operationBehind } from './operation-behind.ts'

/** The call a `fetch` was asked for. */
export interface FetchCall {
  readonly url: URL
  readonly method: string
}

/**
 * The global fetch, under the ambient deadline: it carries what is left to the next service, ends when that is used up
 * with the connection closed, and stands in the ledger. Without a deadline it is the global fetch.
 */
export const fetch: Fetch = wrapFetch()

/**
 * A fetch under the ambient deadline, or that of the signal it is given.
 *
 *     new OpenAI({ fetch: wrapFetch(globalThis.fetch, { operation: 'generate', floor: '300ms' }) })
 *
 * The returned fetch throws BudgetTooSmallError before any I/O if less than the floor is left, OperationTimeoutError
 * after its own timeout, the deadline's reason once that has ended, the caller's own reason if its signal aborts, and
 * UpstreamError, with fetch's error as the cause, if the call fails otherwise.
 * @throws TypeError that names the option which cannot be read.
 */
export function wrapFetch(base: Fetch = globalFetch, options: ClientOptions<FetchCall> = {}): Fetch {
  const resolved = resolveClientOptions(options, 'fetch')
  return async function fetchUnderDeadline(input, init) {
    const request = asRequest(input)
    const callerSignal = (init?.signal === undefined ? request?.signal : init.signal) ?? undefined
    const deadline = deadlineOfCall(callerSignal)
    if (!isBounded({ deadline }, resolved)) return base(input, init)
    callerSignal?.throwIfAborted()
    if (request !== undefined) requestBehind.set(request.signal, request)
    const call = readRequest(input, init)
    const running = startCall(resolved, call, { deadline, signal: callerSignal })
    // a caller that aborts expects its own reason back
    const toFailure = async (_running: RunningOperation, error: unknown): Promise<unknown> => {
      const failure = await failureOf(running, error)
      return callerSignal?.aborted === true && isCausedBy(failure, callerSignal.reason)
        ? callerSignal.reason
        : failure
    }
    try {
      const { signal } = running
      tieOperation(signal, running)
      const followed = await untilCutOff(
        running,
        followUnderDeadline({ base, input, init, call, running, signal, resolved }),
      )
      const outcome = outcomeOfAnswer(new FetchAnswer(followed), running, resolved)
      if (isOutOfTime(outcome)) await throwIfOvertaken(followed.response, running)
      return watchBody(followed.response, running, { outcome, redirected: followed.redirected, toFailure })
    } catch (error) {
      throw await toFailure(running, error)
    }
  }
}

/** Looked up at each call, so that what instruments the global fetch later is heeded. */
function globalFetch(...[input, init]: Parameters<Fetch>): Promise<Response> {
  return globalThis.fetch(input, init)
}

/** A request's signal goes deaf once the request has been collected: while the one is followed, the other must live. */
const requestBehind = new WeakMap<AbortSignal, Request>()

/** The response, unless the end comes first: a fetch may be deaf to its signal, and answer when nobody waits any more. */
function untilCutOff(running: RunningOperation, followed: Promise<Followed>): Promise<Followed> {
  return new Promise((resolve, reject) => {
    running.onCutOff((reason) => {
      reject(reason)
      followed.then(({ response }) => response.body?.cancel()).catch(ignore)
    })
    followed.then(resolve, reject)
  })
}

/** A header is looked up only for who asks: each time costs as much as a deadline. */
class FetchAnswer implements PeerAnswer {
  readonly url: URL
  readonly #response: Response

  constructor({ url, response }: Followed) {
    this.url = url
    this.#response = response
  }

  get status(): number {
    return this.#response.status
  }
  get serverTiming(): string | undefined {
    return this.#response.headers.get('server-timing') ?? undefined
  }
  get deadlineOutcome(): string | undefined {
    return this.#response.headers.get('x-deadline-outcome') ?? undefined
  }
}

/** Throws what the deadline ends with if the peer gave up a moment before it. */
async function throwIfOvertaken(response: Response, running: RunningOperation): Promise<void> {
  await waitOutTheEdge(running.deadline)
  if (running.deadline.reason === undefined) return
  await response.body?.cancel()
  throw running.deadline.reason
}

function isCausedBy(failure: unknown, reason: unknown): boolean {
  return failure === reason || (failure instanceof Error && failure.cause === reason)
}

function ignore(): void {}
