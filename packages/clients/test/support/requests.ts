import type { Dispatcher, request } from 'undici'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** undici's `request` as the contract calls clients. */
export function requestCaller(
  send: typeof request,
  dispatcher?: Dispatcher | ((origin: string) => Dispatcher),
): Caller {
  return async function callByRequest(url: string, call: Call = {}): Promise<Answer> {
    const chosen = typeof dispatcher === 'function' ? dispatcher(new URL(url).origin) : dispatcher
    const { statusCode, headers, body } = await send(url, {
      method: call.method ?? 'GET',
      headers: { ...call.headers },
      ...(call.body === undefined ? {} : { body: call.body }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
      ...(chosen === undefined ? {} : { dispatcher: chosen }),
    })
    return { status: statusCode, header: (name) => headers[name]?.toString(), text: () => body.text() }
  }
}
