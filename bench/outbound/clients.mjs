import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { leastFetch, leastRequest, passingOn, passingOnWithHeaders, passOnGlobally } from './floors.mjs'

const limit = 5_000
const bare = 'bare'
const byHand = 'AbortSignal.timeout'

/** A caller that has an async context and nothing else: what no deadline that is found by itself can cost less than. */
export const inContext = 'AsyncLocalStorage alone'

/** And what else no call that keeps a deadline can do without, written by hand; in such a context too. */
export const leastAlone = 'the least alone'
export const leastByDispatcher = 'the least alone, by its dispatcher'

/** Each client bare, with a timeout by hand, and with timebudget; every call reads its answer to the end. */
export const clients = {
  fetch: {
    [bare]: () => async (url) => (await fetch(url)).text(),
    [inContext]: () => async (url) => (await fetch(url)).text(),
    [leastAlone]: () => leastFetch,
    [leastByDispatcher]: () => {
      passOnGlobally()
      return async (url) => (await fetch(url)).text()
    },
    [byHand]: () => async (url) => (await fetch(url, { signal: AbortSignal.timeout(limit) })).text(),
    'timebudget, fetch': async () => {
      const { fetch } = await import('@timebudget/clients/fetch')
      return async (url) => (await fetch(url)).text()
    },
    'timebudget, instrumentUndici': async () => {
      const { instrumentUndici } = await import('@timebudget/clients/undici')
      instrumentUndici()
      return async (url) => (await fetch(url)).text()
    },
  },
  'undici.request': {
    [bare]: () => undici({}),
    [inContext]: () => undici({}),
    'interceptor that does nothing': () => undici({ interceptor: passingOn }),
    [leastAlone]: () => undici({ interceptor: passingOnWithHeaders }),
    [byHand]: () => undici({ signalOf: () => AbortSignal.timeout(limit) }),
    timebudget: async () =>
      undici({ interceptor: (await import('@timebudget/clients/undici')).deadlineInterceptor() }),
  },
  'node:http': {
    [bare]: () => nodeHttp({ request: httpRequest }),
    [inContext]: () => nodeHttp({ request: httpRequest }),
    'two headers by hand': () =>
      nodeHttp({ request: httpRequest, optionsOf: () => ({ headers: twoHeaders }) }),
    [leastAlone]: () => nodeHttp({ request: leastRequest }),
    [byHand]: () =>
      nodeHttp({ request: httpRequest, optionsOf: () => ({ signal: AbortSignal.timeout(limit) }) }),
    timebudget: async () => nodeHttp({ request: (await import('@timebudget/clients/node-http')).request }),
    'timebudget, DeadlineAgent': async () => {
      const { DeadlineAgent } = await import('@timebudget/clients/node-http')
      const agent = new DeadlineAgent({ agent: new HttpAgent({ keepAlive: true }) })
      return nodeHttp({ request: httpRequest, optionsOf: () => ({ agent }) })
    },
  },
}

const twoHeaders = { 'x-request-deadline': '1800000000000', 'x-request-timeout-ms': '60000' }

async function undici({ signalOf, interceptor }) {
  const { Agent, request } = await import('undici')
  const agent = new Agent()
  const dispatcher = interceptor === undefined ? agent : agent.compose(interceptor)
  return async (url) => {
    const { body } = await request(url, signalOf ? { dispatcher, signal: signalOf() } : { dispatcher })
    return body.text()
  }
}

function nodeHttp({ request, optionsOf }) {
  const agent = new HttpAgent({ keepAlive: true })
  return (url) =>
    new Promise((resolve, reject) => {
      const sent = request(url, { agent, ...optionsOf?.() }, (response) => {
        response.on('data', () => {})
        response.on('end', resolve)
        response.on('error', reject)
      })
      sent.on('error', reject)
      sent.end()
    })
}
