import type { AxiosInstance } from 'axios'
import { setMaxListeners } from 'node:events'
import { Readable } from 'node:stream'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** Any axios instance as the contract calls clients: its body is a stream. */
export function axiosCaller(instance: AxiosInstance): Caller {
  return async function callByAxios(url: string, call: Call = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, body, signal } = call
    if (signal !== undefined) setMaxListeners(0, signal) // axios itself listens once for each request
    const response = await instance.request<unknown>({
      url,
      method,
      headers: { ...headers },
      data: body,
      responseType: 'stream',
      validateStatus: () => true,
      ...(signal === undefined ? {} : { signal }),
    })
    return {
      status: response.status,
      header: (name) => response.headers[name]?.toString(),
      text: () => textOf(response.data),
    }
  }
}

/** The http adapter gives a stream of Node's, the fetch adapter one of the web's. */
async function textOf(body: unknown): Promise<string> {
  if (body instanceof Readable) return new TextDecoder().decode(Buffer.concat(await body.toArray()))
  if (body instanceof ReadableStream) return new Response(body).text()
  throw new Error('no stream')
}
