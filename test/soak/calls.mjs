// Every client as one function: (url, headers) -> { status, outcome, type, text }. Failures are thrown as they are.
import { Agent as HttpAgent } from 'node:http'
import { wrapFetch } from '@timebudget/clients/fetch'
import { attachDeadline } from '@timebudget/clients/axios'
import { deadlineHooks } from '@timebudget/clients/got'
import { request as httpRequest } from '@timebudget/clients/node-http'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import axios from 'axios'
import got from 'got'
import { Agent, request as undiciRequest } from 'undici'

const fetch = wrapFetch()
const dispatcher = new Agent()
const governed = dispatcher.compose(deadlineInterceptor())
const sockets = new HttpAgent({ keepAlive: true })
const axiosSockets = new HttpAgent({ keepAlive: true })
const gotSockets = new HttpAgent({ keepAlive: true })
const axiosClient = axios.create({
  httpAgent: axiosSockets,
  responseType: 'text',
  transformResponse: (data) => data,
  validateStatus: () => true,
})
attachDeadline(axiosClient)
const gotClient = got.extend(deadlineHooks(), {
  agent: { http: gotSockets },
  throwHttpErrors: false,
  retry: { limit: 0 },
})

const outcomeHeader = 'x-deadline-outcome'

export const calls = {
  async fetch(url, headers, signal) {
    const response = await fetch(url, { headers, signal })
    const type = response.headers.get('content-type') ?? ''
    const text = await response.text()
    return { status: response.status, outcome: response.headers.get(outcomeHeader) ?? undefined, type, text }
  },
  async undici(url, headers, signal) {
    const {
      statusCode,
      headers: answered,
      body,
    } = await undiciRequest(url, { headers, signal, dispatcher: governed })
    return ofNode(statusCode, answered, await body.text())
  },
  http(url, headers, signal) {
    return new Promise((resolve, reject) => {
      const request = httpRequest(url, { headers, signal, agent: sockets }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => resolve(ofNode(response.statusCode, response.headers, text)))
      })
      request.on('error', reject)
      request.end()
    })
  },
  async axios(url, headers, signal) {
    const { status, headers: answered, data } = await axiosClient.get(url, { headers, signal })
    return ofNode(status, answered, data)
  },
  async got(url, headers, signal) {
    const { statusCode, headers: answered, body } = await gotClient(url, { headers, signal })
    return ofNode(statusCode, answered, body)
  },
}

function ofNode(status, headers, text) {
  return { status, outcome: headers[outcomeHeader], type: headers['content-type'] ?? '', text }
}

/** Lets go of every connection that is kept for later. */
export async function closeConnections() {
  for (const agent of [sockets, axiosSockets, gotSockets]) agent.destroy()
  await dispatcher.destroy()
  // Node's own fetch keeps its connections where every copy of undici finds them
  const own = globalThis[Symbol.for('undici.globalDispatcher.1')]
  await own?.destroy()
}
