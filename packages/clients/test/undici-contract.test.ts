import { Agent, type Dispatcher, Pool, request } from 'undici'
import * as undici6 from 'undici6'
import { deadlineInterceptor, instrumentUndici } from '../src/undici.ts'
import {
  type ClientUnderTest,
  clientContract,
  type ContractOptions,
  type GovernedClient,
} from './client-contract.ts'
import { fetchCaller } from './support/fetches.ts'
import { requestCaller } from './support/requests.ts'

// Between its majors undici's types differ in what nobody here uses.
const request6 = undici6.request as unknown as typeof request
const makeAgent6 = (connections: number): Dispatcher =>
  new undici6.Agent({ connections }) as unknown as Dispatcher

function withAgent(
  name: string,
  send: typeof request,
  makeAgent: (connections: number) => Dispatcher,
): ClientUnderTest {
  return {
    name,
    operation: 'undici',
    isBounded: true,
    bare: requestCaller(send, makeAgent(1)),
    govern({ connections = 64, ...options }: ContractOptions): GovernedClient {
      const agent = makeAgent(connections)
      const governed = agent.compose(deadlineInterceptor(options))
      return { call: requestCaller(send, governed), [Symbol.asyncDispose]: () => agent.destroy() }
    },
  }
}

clientContract(withAgent('an Agent of undici 7', request, (connections) => new Agent({ connections })))
clientContract(withAgent('an Agent of undici 6', request6, makeAgent6))

clientContract({
  name: 'a Pool of undici 7',
  operation: 'undici',
  isBounded: true,
  bare: requestCaller(request),
  govern({ connections = 2, ...options }) {
    const pools = new Map<string, Pool>()
    const poolOf = (origin: string): Dispatcher => {
      const pool = pools.get(origin) ?? new Pool(origin, { connections })
      pools.set(origin, pool)
      return pool.compose(deadlineInterceptor(options))
    }
    return {
      call: requestCaller(request, poolOf),
      async [Symbol.asyncDispose]() {
        await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      },
    }
  },
})

clientContract({
  name: 'the global fetch, instrumented',
  operation: 'fetch',
  isBounded: false,
  isProcessWide: true,
  bare: fetchCaller((input, init) => globalThis.fetch(input, init)),
  govern(options) {
    const uninstrument = instrumentUndici(options)
    return {
      call: fetchCaller((input, init) => globalThis.fetch(input, init)),
      [Symbol.asyncDispose]: async () => uninstrument(),
    }
  },
})
