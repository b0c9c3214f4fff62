import type { ClientRequest } from 'node:http'
import type { CancelableRequest, RequestError } from 'got'
import { explainAbort, type GotCallUnderDeadline, isCallersOwn } from './got-call.ts'

/** What settles with one of the call's own promises, and by the deadline. */
type Settle = <T>(promise: PromiseLike<T>) => Promise<T>

/** The promise of a call that settles by the deadline, whatever got is at: an attempt, a pause, somebody's hook. */
export function settlingPromise(call: CancelableRequest, governed: GotCallUnderDeadline): CancelableRequest {
  let request: ClientRequest | undefined
  void call.on('request', (sent) => (request = sent))
  void call.on('response', (response) => governed.answered(response))
  const cutOff = new Promise<never>((_resolve, reject) => {
    governed.onCutOff((reason) => {
      reject(reason)
      stop(call, request, reason)
    })
  })
  cutOff.catch(ignore)
  return likeGots(call, (promise) => Promise.race([cutOff, judged(promise, governed)]))
}

/** The promise of a call that a hook refuses; one that its caller has aborted already fails with got's own error. */
export function refusedPromise(
  call: CancelableRequest,
  refusal: unknown,
  signal: AbortSignal | undefined,
): CancelableRequest {
  return likeGots(call, async (promise) => {
    try {
      await promise
    } catch (error) {
      if (!isCallersOwn(refusal, signal)) throw refusal
      explainAbort(error as Error, refusal, signal)
      throw error
    }
    throw refusal
  })
}

async function judged<T>(promise: PromiseLike<T>, governed: GotCallUnderDeadline): Promise<T> {
  let value: T
  try {
    value = await promise
  } catch (error) {
    throw await governed.judge(error as RequestError)
  }
  const reason = await governed.finish()
  if (reason !== undefined) throw reason
  return value
}

/** A promise with got's shortcuts and its `cancel`; got adds the rest, such as `on`. */
function likeGots<T>(call: CancelableRequest<T>, settle: Settle): CancelableRequest<T> {
  const promise = settle(call)
  const shortcut = <Body>(make: () => CancelableRequest<Body>) => ({
    value: () => {
      promise.catch(ignore) // whoever takes the shortcut waits for that alone
      return likeGots(make(), settle)
    },
  })
  return Object.defineProperties(promise, {
    json: shortcut(() => call.json()),
    text: shortcut(() => call.text()),
    buffer: shortcut(() => call.buffer()),
    on: { value: (...args: Parameters<typeof call.on>) => (call.on(...args), promise) },
    off: { value: (...args: Parameters<typeof call.off>) => (call.off(...args), promise) },
    isCanceled: { get: () => call.isCanceled },
    // got sets its own, which can be called on its own promise only
    cancel: { get: () => () => call.cancel(), set: ignore },
  }) as CancelableRequest<T>
}

/** From 15 on, and where another handler has put a promise of its own in the place of got's, there is no `cancel`. */
function stop(call: CancelableRequest, request: ClientRequest | undefined, reason: Error): void {
  try {
    call.cancel()
  } catch {
    request?.destroy(reason) // no further attempt gets past our hook
  }
}

function ignore(): void {}
