import type { TestContext } from 'vitest'
import { freePort } from '../../../../test/support/free-port.ts'
import { type Proxy, proxyTo, type Treatment } from '../support/proxy.ts'
import { redisServer } from '../../../../test/support/redis-server.ts'
import { serveUntrusted } from '../support/untrusted.ts'
import { type Behaviour, type Bench, isUnreachable } from './any-client.ts'

/** Where a client of Redis connects to. */
export interface RedisTarget {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
}

/** A client of Redis, or of what lives on it, that connects once and never again. */
export interface RedisUser {
  /** Connects, as a service does before it takes requests. */
  connect(): Promise<unknown>
  /** Does one thing, with `answer` for a name; connects first where nobody has. */
  call(): Promise<unknown>
  close(): void
  /** What its client has emitted as errors. */
  readonly heard: readonly unknown[]
}

interface RedisUsers {
  readonly open: (target: RedisTarget) => { readonly governed: RedisUser; readonly bare: RedisUser }
  readonly told?: () => number | undefined
}

const treatments: Readonly<Partial<Record<Behaviour, Treatment>>> = {
  'is slow': 'late',
  'is silent': 'held',
  stalls: 'begun',
  'resets the connection before its answer': 'reset',
  'closes the connection before its answer': 'closed',
  'resets the connection in the middle of its answer': 'begun, then reset',
}

/** A Redis, a proxy before it, and a client. */
export async function redisBench(
  behaviour: Behaviour,
  { open, told = () => undefined }: RedisUsers,
  context: TestContext,
): Promise<Bench> {
  const { target, server, proxy } = await upstreamThat(behaviour, context)
  const { governed, bare } = open(target)
  if (!isUnreachable(behaviour)) await Promise.all([governed.connect(), bare.connect()])
  return {
    call: () => governed.call(),
    bare: () => bare.call(),
    told,
    get heard() {
      return [...governed.heard, ...bare.heard]
    },
    traffic: () => proxy?.traffic ?? 0,
    async nextCall() {
      await proxy?.nextCall()
      // a command that was written is carried out
      return { abandoned: () => Promise.reject(new Error('nobody ends it')) }
    },
    async [Symbol.asyncDispose]() {
      governed.close()
      bare.close()
      await server?.[Symbol.asyncDispose]()
    },
  }
}

interface Upstream {
  readonly target: RedisTarget
  readonly server?: AsyncDisposable
  readonly proxy?: Proxy
}

async function upstreamThat(behaviour: Behaviour, context: TestContext): Promise<Upstream> {
  const host = '127.0.0.1'
  switch (behaviour) {
    case 'refuses the connection':
      return { target: { host, port: await freePort(), isSecure: false } }
    case 'has a name that nobody knows':
      return { target: { host: 'nobody.invalid', port: 6379, isSecure: false } }
    case 'has a certificate that nobody vouches for': {
      const server = await serveUntrusted()
      return { target: { host, port: server.port, isSecure: true }, server }
    }
    default: {
      const { port } = await redisServer(context)
      const treatment = treatments[behaviour] ?? 'passed'
      const proxy = await proxyTo(port, { treatment, isCall: (bytes) => bytes.includes('answer') })
      return { target: { host, port: proxy.port, isSecure: false }, server: proxy, proxy }
    }
  }
}
