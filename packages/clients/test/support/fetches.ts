import type { Fetch } from '../../src/fetch.ts'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** Any fetch as the contract calls clients; `dispatcher` is undici's. */
export function fetchCaller(fetch: Fetch, dispatcher?: object): Caller {
  return async function callByFetch(url: string, call: Call = {}): Promise<Answer> {
    const init: RequestInit = {
      method: call.method ?? 'GET',
      headers: { ...call.headers },
      body: call.body ?? null,
    }
    if (call.signal !== undefined) init.signal = call.signal
    const answer = await fetch(url, dispatcher === undefined ? init : through(dispatcher, init))
    return {
      status: answer.status,
      header: (name) => answer.headers.get(name) ?? undefined,
      text: () => answer.text(),
    }
  }
}

/** The same with a dispatcher, of whichever undici. */
export function through(dispatcher: object, init: RequestInit = {}): RequestInit {
  return Object.assign(init, { dispatcher })
}
