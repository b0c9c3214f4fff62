import { once, setMaxListeners } from 'node:events'
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https, { type RequestOptions } from 'node:https'
import type { NodeRequest } from '../../src/node-http.ts'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** Node's own request for either protocol. */
export const plainRequest: NodeRequest = (...args: unknown[]): ClientRequest => {
  const { request } = String(args[0]).startsWith('https:') ? https : http
  return Reflect.apply(request, undefined, args)
}

/** Any `request` as the contract calls clients. */
export function requestCaller(request: NodeRequest, options: RequestOptions = {}): Caller {
  return async function callByRequest(url: string, call: Call = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, body, signal } = call
    if (signal !== undefined) setMaxListeners(0, signal) // Node itself listens once for each request
    const asked = { ...options, method, headers, ...(signal === undefined ? {} : { signal }) }
    return answerTo(request(url, asked), body)
  }
}

/** Ends a request, and reads the answer to it. */
export async function answerTo(request: ClientRequest, body?: string): Promise<Answer> {
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  request.on('error', () => undefined) // whoever reads the response hears of it there
  return {
    status: response.statusCode ?? 0,
    header: (name) => response.headers[name]?.toString(),
    text: () => textOf(response),
  }
}

export async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
  return text
}
