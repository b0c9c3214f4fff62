import http from 'node:http'
import https from 'node:https'
import got from 'got'
import { slowUpstream } from '@timebudget/core/testing'
import { beforeAll } from 'vitest'
import { deadlineHooks } from '../src/got.ts'
import { type ClientUnderTest, clientContract } from './client-contract.ts'
import { gotCaller, gotStreamCaller } from './support/got-calls.ts'

function client(name: string, callerOf: typeof gotCaller): ClientUnderTest {
  return {
    name,
    operation: 'got',
    isBounded: true,
    bare: callerOf(got),
    govern({ connections = 64, ...options }) {
      const shape = { maxSockets: connections, keepAlive: true }
      const agent = { http: new http.Agent(shape), https: new https.Agent(shape) }
      return {
        call: callerOf(got.extend(deadlineHooks(options)), { agent }),
        async [Symbol.asyncDispose]() {
          agent.http.destroy()
          agent.https.destroy()
        },
      }
    },
  }
}

// the first call of a process takes longer than some of the contract's budgets
beforeAll(async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  await got(upstream.url)
})

clientContract(client('got', gotCaller))
clientContract(client('got.stream', gotStreamCaller))
