import { slowUpstream, type SlowUpstreamOptions } from '@timebudget/core/testing'
import type { AnyClient, Behaviour, Bench, BenchOptions } from '../every-client/contract.ts'
import { deadUrl, serveHttp, serveHttps, serveRaw, type TestServer } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'

/** An HTTP client as one of every protocol. */
export function anyHttpClient(client: ClientUnderTest): AnyClient {
  return {
    name: client.name,
    operation: client.operation,
    failsWith: 'our error',
    isAlone: client.isProcessWide ?? false,
    bench: async (behaviour, options) => httpBench(client, await upstreamThat(behaviour), options),
  }
}

/** A client of HTTP and the upstream that it calls. */
export function httpBench(client: ClientUnderTest, upstream: Upstream, options: BenchOptions): Bench {
  const governed = client.govern(options)
  return {
    ...upstream,
    call: async () => (await governed.call(upstream.url)).text(),
    bare: async () => (await client.bare(upstream.url)).text(),
    async [Symbol.asyncDispose]() {
      await governed[Symbol.asyncDispose]()
      await upstream[Symbol.asyncDispose]()
    },
  }
}

type Upstream = Omit<Bench, 'call' | 'bare'> & { readonly url: string }

const begunAnswer = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun '

function upstreamThat(behaviour: Behaviour): Promise<Upstream> {
  switch (behaviour) {
    case 'answers':
      return answering()
    case 'is slow':
      return slow({ delay: 150 })
    case 'is silent':
      return slow({})
    case 'stalls':
      return slow({ startsAtOnce: true })
    case 'refuses the connection':
      return deadUrl().then((url) => faulty({ url }))
    case 'has a name that nobody knows':
      return Promise.resolve(faulty({ url: 'http://nobody.invalid/' }))
    case 'has a certificate that nobody vouches for':
      return serveHttps((_request, response) => response.end('secret')).then(faulty)
    case 'resets the connection before its answer':
      return serveRaw((socket) => socket.resetAndDestroy()).then(faulty)
    case 'closes the connection before its answer':
      return serveRaw((socket) => socket.end()).then(faulty)
    case 'resets the connection in the middle of its answer':
      return serveRaw((socket) => {
        socket.write(begunAnswer)
        setTimeout(() => socket.resetAndDestroy(), 30)
      }).then(faulty)
  }
}

async function answering(): Promise<Upstream> {
  const told: (string | undefined)[] = []
  const server = await serveHttp((request, response) => {
    told.push(request.headers['x-request-timeout-ms']?.toString())
    response.end('done')
  })
  return {
    ...faulty(server),
    told: () => (told.at(-1) === undefined ? undefined : Number(told.at(-1))),
    traffic: () => server.connections + told.length,
  }
}

async function slow(options: SlowUpstreamOptions): Promise<Upstream> {
  const upstream = await slowUpstream(options)
  return {
    ...faulty(upstream),
    async nextCall() {
      const request = await upstream.nextRequest()
      return { abandoned: () => request.abandoned }
    },
  }
}

/** One that a test learns nothing of but from the failure of its calls. */
export function faulty(server: Pick<TestServer, 'url'> & Partial<AsyncDisposable>): Upstream {
  return {
    url: server.url,
    told: () => undefined,
    traffic: () => 0,
    nextCall: () => Promise.reject(new Error('no call can be seen')),
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose]?.(),
  }
}
