import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Got, OptionsInit, Request, Response } from 'got'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** What of got's own doing is kept out of the contract. */
const plain = { retry: { limit: 0 }, throwHttpErrors: false } as const

function optionsFor({ method = 'GET', headers = {}, body, signal }: Call): OptionsInit {
  return {
    ...plain,
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  }
}

/** got's promises as the contract calls clients: the answer is there with its headers, and the promise is its text. */
export function gotCaller(got: Got, options: OptionsInit = {}): Caller {
  return (url: string, call: Call = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const promise = got(url, {
        ...optionsFor(call),
        ...options,
        isStream: false,
        responseType: 'text',
        resolveBodyOnly: false,
      })
      const text = promise.then(({ body }) => body)
      text.catch(reject)
      void promise.on('request', (request) => {
        request.once('response', (response: IncomingMessage) => resolve(answerOf(response, () => text)))
      })
    })
}

/** got's streams as the contract calls clients. */
export function gotStreamCaller(got: Got, options: OptionsInit = {}): Caller {
  return async function callByStream(url: string, call: Call = {}): Promise<Answer> {
    const stream = got.stream(url, { ...optionsFor(call), ...options, isStream: true })
    const [response] = (await once(stream, 'response')) as [Response]
    stream.on('error', () => undefined) // whoever reads it hears of it there
    return answerOf(response, () => textOf(stream))
  }
}

function answerOf(response: IncomingMessage, text: () => Promise<string>): Answer {
  return {
    status: response.statusCode ?? 0,
    header: (name) => response.headers[name]?.toString(),
    text,
  }
}

export async function textOf(stream: Request): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}
