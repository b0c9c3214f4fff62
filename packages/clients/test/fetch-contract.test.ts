import { Agent, fetch as fetch7 } from 'undici'
import { Agent as Agent6, fetch as fetch6 } from 'undici6'
import { type Fetch, fetch as governedFetch, wrapFetch } from '../src/fetch.ts'
import { type ClientUnderTest, clientContract } from './client-contract.ts'
import { fetchCaller } from './support/fetches.ts'

const bareFetch: Fetch = (input, init) => globalThis.fetch(input, init)

interface Kind {
  readonly base: Fetch
  readonly makeAgent: (connections: number) => { close(): Promise<void>; destroy(): Promise<void> }
}

/** A fetch that is wrapped, with a dispatcher of its own so that its connections end with the test. */
function wrapped(name: string, { base, makeAgent }: Kind): ClientUnderTest {
  return {
    name,
    operation: 'fetch',
    isBounded: true,
    bare: fetchCaller(base, makeAgent(1)),
    govern({ connections = 64, ...options }) {
      const agent = makeAgent(connections)
      return {
        call: fetchCaller(wrapFetch(base, options), agent),
        [Symbol.asyncDispose]: () => agent.destroy(),
      }
    },
  }
}

clientContract({
  name: 'fetch',
  operation: 'fetch',
  isBounded: false,
  bare: fetchCaller(bareFetch),
  govern(options) {
    const fetch = Object.keys(options).length === 0 ? governedFetch : wrapFetch(undefined, options)
    return { call: fetchCaller(fetch), [Symbol.asyncDispose]: () => Promise.resolve() }
  },
})
const makeAgent6 = (connections: number): Agent6 => new Agent6({ connections })
const makeAgent7 = (connections: number): Agent => new Agent({ connections })
clientContract(wrapped('wrapFetch of the global fetch', { base: bareFetch, makeAgent: makeAgent6 }))
clientContract(wrapped('wrapFetch of undici 7', { base: fetch7 as unknown as Fetch, makeAgent: makeAgent7 }))
clientContract(wrapped('wrapFetch of undici 6', { base: fetch6 as unknown as Fetch, makeAgent: makeAgent6 }))
