import { deferred } from '../support/deferred.ts'
import { freePort } from '../../../../test/support/free-port.ts'
import { proxyTo } from '../support/proxy.ts'
import { serveUntrusted, type UntrustedServer } from '../support/untrusted.ts'
import type { Behaviour, Bench, BenchOptions, SeenCall } from './contract.ts'

/** A call with one answer, or one with a stream of them: only the second can stall in the middle. */
export type RpcMethod = 'ask' | 'list'

/** What a handler of the bench does: answer at once or after 150 ms, never, or never after the first message. */
export type Handling = 'answers' | 'is slow' | 'is silent' | 'stalls'

/** A call as the handler sees it. */
export interface ArrivedCall extends SeenCall {
  readonly told: number | undefined
}

export interface RpcServer extends AsyncDisposable {
  readonly port: number
}

/** Where a client calls. */
export interface RpcTarget {
  readonly host: string
  readonly isSecure: boolean
}

/** One of the libraries for remote calls. */
export interface RpcLibrary {
  serve(handling: Handling, arrived: (call: ArrivedCall) => void): Promise<RpcServer>
  /** A client under the deadline, or a bare one if there are no options. */
  connect(target: RpcTarget, options: BenchOptions | undefined): RpcClient
}

export interface RpcClient extends Disposable {
  call(method: RpcMethod): Promise<unknown>
}

export async function rpcBench(
  library: RpcLibrary,
  behaviour: Behaviour,
  options: BenchOptions,
): Promise<Bench> {
  const upstream = await upstreamThat(behaviour, library)
  const clients = [
    library.connect(upstream.target, options),
    library.connect(upstream.target, undefined),
  ] as const
  const method = handlingOf(behaviour) === 'stalls' ? 'list' : 'ask'
  return {
    ...upstream,
    call: () => clients[0].call(method),
    bare: () => clients[1].call(method),
    async [Symbol.asyncDispose]() {
      for (const client of clients) client[Symbol.dispose]()
      await upstream[Symbol.asyncDispose]()
    },
  }
}

type Upstream = Omit<Bench, 'call' | 'bare'> & { readonly target: RpcTarget }

function handlingOf(behaviour: Behaviour): Handling {
  if (behaviour === 'resets the connection in the middle of its answer') return 'stalls'
  return behaviour === 'answers' || behaviour === 'is slow' || behaviour === 'stalls'
    ? behaviour
    : 'is silent'
}

async function upstreamThat(behaviour: Behaviour, library: RpcLibrary): Promise<Upstream> {
  switch (behaviour) {
    case 'refuses the connection':
      return unreachable(`127.0.0.1:${await freePort()}`)
    case 'has a name that nobody knows':
      return unreachable('nobody.invalid:50051')
    case 'has a certificate that nobody vouches for':
      return untrusted(await serveUntrusted())
    default:
      return behindProxy(behaviour, library)
  }
}

async function behindProxy(behaviour: Behaviour, library: RpcLibrary): Promise<Upstream> {
  const [seen, waiting]: [ArrivedCall[], ((call: ArrivedCall) => void)[]] = [[], []]
  let taken = 0
  const server = await library.serve(handlingOf(behaviour), (call) => {
    seen.push(call)
    waiting.shift()?.(call)
    if (behaviour === 'resets the connection before its answer') proxy.reset()
    if (behaviour === 'closes the connection before its answer') proxy.close()
    if (behaviour === 'resets the connection in the middle of its answer') setTimeout(() => proxy.reset(), 30)
  })
  const proxy = await proxyTo(server.port)
  const { port } = proxy
  return {
    target: { host: `127.0.0.1:${port}`, isSecure: false },
    told: () => seen.at(-1)?.told,
    traffic: () => proxy.traffic + seen.length,
    async nextCall() {
      taken += 1
      const known = seen[taken - 1]
      if (known !== undefined) return known
      const { promise, resolve } = deferred<ArrivedCall>()
      waiting.push(resolve)
      return promise
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

function untrusted({ port, ...server }: UntrustedServer): Upstream {
  const host = `127.0.0.1:${port}`
  return { ...unreachable(host), target: { host, isSecure: true }, ...server }
}

function unreachable(host: string): Upstream {
  return {
    target: { host, isSecure: false },
    told: () => undefined,
    traffic: () => 0,
    nextCall: () => Promise.reject(new Error('no call can arrive')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
