import axios, { type AxiosInstance } from 'axios'
import http from 'node:http'
import https from 'node:https'
import { beforeAll } from 'vitest'
import { slowUpstream } from '@timebudget/core/testing'
import { attachDeadline } from '../src/axios.ts'
import { type ClientUnderTest, clientContract } from './client-contract.ts'
import { axiosCaller } from './support/axios-calls.ts'

function axiosWith(adapter: 'http' | 'fetch'): ClientUnderTest {
  const bare = (): AxiosInstance => axios.create({ adapter, proxy: false })
  return {
    name: `axios by its ${adapter} adapter`,
    operation: 'axios',
    isBounded: adapter === 'http',
    bare: axiosCaller(bare()),
    govern({ connections, ...options }) {
      const instance = bare()
      attachDeadline(instance, options)
      if (adapter === 'fetch')
        return { call: axiosCaller(instance), [Symbol.asyncDispose]: () => Promise.resolve() }
      const shape = { keepAlive: true, maxSockets: connections ?? Infinity }
      const agents = [new http.Agent(shape), new https.Agent(shape)] as const
      Object.assign(instance.defaults, { httpAgent: agents[0], httpsAgent: agents[1] })
      return {
        call: axiosCaller(instance),
        async [Symbol.asyncDispose]() {
          for (const agent of agents) agent.destroy()
        },
      }
    },
  }
}

// the first calls of a process take axios longer than some of the contract's budgets are
beforeAll(async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  for (const adapter of ['http', 'fetch']) {
    const instance = axios.create({ adapter, proxy: false })
    attachDeadline(instance, { timeout: '10s' })
    for (let call = 0; call < 20; call += 1) await instance.get(upstream.url)
  }
})

clientContract(axiosWith('http'))
clientContract(axiosWith('fetch'))
