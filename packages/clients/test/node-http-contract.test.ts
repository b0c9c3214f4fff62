import http from 'node:http'
import https from 'node:https'
import { DeadlineAgent, request, wrapRequest } from '../src/node-http.ts'
import { clientContract } from './client-contract.ts'
import { plainRequest, requestCaller } from './support/node-requests.ts'

clientContract({
  name: 'request of node:http',
  operation: 'http',
  isBounded: true,
  bare: requestCaller(plainRequest),
  govern({ connections, ...options }) {
    const governed = Object.keys(options).length === 0 ? request : wrapRequest(undefined, options)
    const agent =
      connections === undefined ? undefined : new http.Agent({ maxSockets: connections, keepAlive: true })
    return {
      call: requestCaller(governed, agent === undefined ? {} : { agent }),
      [Symbol.asyncDispose]: async () => agent?.destroy(),
    }
  },
})

clientContract({
  name: 'DeadlineAgent',
  operation: 'http',
  isBounded: true,
  bare: requestCaller(plainRequest),
  govern({ connections = 64, ...options }) {
    const shape = { maxSockets: connections, keepAlive: true }
    const [plain, secure] = [new http.Agent(shape), new https.Agent(shape)]
    const httpAgent = new DeadlineAgent({ agent: plain, ...options })
    const httpsAgent = new DeadlineAgent({ agent: secure, ...options })
    return {
      call: (url, call) =>
        requestCaller(plainRequest, { agent: url.startsWith('https:') ? httpsAgent : httpAgent })(url, call),
      async [Symbol.asyncDispose]() {
        httpAgent.destroy()
        httpsAgent.destroy()
      },
    }
  },
})
