import { EventEmitter } from 'node:events'
import type { RunningOperation } from '@timebudget/core'
import { type ResolvedClientOptions, resolveClientOptions } from './outgoing.ts'
import { noLongerThan } from './redis-blocking.ts'
import {
  answer,
  isBoundedNow,
  runNotingFailure,
  splitCallback,
  startCallNow,
  type StoreOptions,
} from './store-call.ts'

/** The command that Redis was asked for, in lower case; `exec` for a whole transaction or pipeline. */
export interface RedisCall {
  readonly command: string
}

/** What `withDeadline` takes. */
export type RedisOptions = StoreOptions<RedisCall>

type Resolved = ResolvedClientOptions<RedisCall>
type Method = (...args: unknown[]) => unknown

/**
 * A view of the same client, node-redis or ioredis, whose commands keep the ambient deadline: both clients wait for
 * ever on a server that has gone silent. Transactions and pipelines are bounded as a whole, blocking commands block no
 * longer than there is time, and a late answer is swallowed.
 *
 *     const cache = withDeadline(createClient(), { timeout: '50ms', floor: '5ms' })
 *     const hit = await cache.get(key)
 *
 * Commands fail with BudgetTooSmallError before any I/O, OperationTimeoutError, the deadline's reason, or the client's
 * own error.
 * @throws TypeError that names the option which cannot be read.
 */
export function withDeadline<T extends object>(client: T, options: RedisOptions = {}): T {
  if (!('sendCommand' in client)) throw new TypeError('client: expected a client of node-redis or ioredis')
  return governClient(client, resolveClientOptions(options, 'redis'))
}

function governClient<T extends object>(client: T, resolved: Resolved): T {
  return withMethods(client, (name, member) => {
    if (typeof member === 'object' && isNamespace(member))
      return governNamespace(client, name, member, resolved)
    if (typeof member !== 'function') return member
    const method: Method = (...args) => Reflect.apply(member, client, args)
    if (makesClients.has(name)) return (...args: unknown[]) => governClient(Object(method(...args)), resolved)
    if (isChain(name)) return (...args: unknown[]) => governChain(method, args, { name, resolved })
    if (isNoCommand(name)) return method
    return governed(name, resolved, (args, running) => {
      const receiver = unlessItHasEnded(client, running)
      return Reflect.apply(Reflect.get(receiver, name), receiver, args)
    })
  })
}

/** A command that waits for a connection is withdrawn at the end, so that it is not carried out for nobody; node-redis only. */
function unlessItHasEnded(client: WaitingClient, running: RunningOperation | undefined): object {
  if (running === undefined || client.isReady !== false || client.withAbortSignal === undefined) return client
  const isTheCallers = client._commandOptions?.abortSignal !== undefined
  return isTheCallers ? client : client.withAbortSignal(running.signal)
}

/** What node-redis has for commands that cannot be sent yet. */
interface WaitingClient {
  readonly isReady?: boolean
  readonly _commandOptions?: { readonly abortSignal?: AbortSignal }
  withAbortSignal?(signal: AbortSignal): object
}

/** The commands of a module, such as `client.json`. */
function governNamespace(client: object, namespace: string, commands: object, resolved: Resolved): object {
  return withMethods(commands, (name, member) => {
    if (typeof member !== 'function') return member
    return governed(name, resolved, (args, running) => {
      const receiver: object = Reflect.get(unlessItHasEnded(client, running), namespace)
      return Reflect.apply(Reflect.get(receiver, name), receiver, args)
    })
  })
}

/** A transaction or pipeline: nothing is sent before its `exec`. */
function governChain(
  begin: Method,
  args: unknown[],
  { name, resolved }: { readonly name: string; readonly resolved: Resolved },
): unknown {
  const chain = begin(...args)
  if (typeof chain !== 'object' || chain === null || isPromiseLike(chain)) {
    return isPromiseLike(chain) ? governed(name, resolved, () => chain)() : chain
  }
  const view: object = withMethods(chain, (step, member) => {
    if (typeof member !== 'function') return member
    if (/^exec/i.test(step)) return governed('exec', resolved, (given) => Reflect.apply(member, chain, given))
    return (...given: unknown[]) => {
      const result: unknown = Reflect.apply(member, chain, given)
      return result === chain ? view : result
    }
  })
  return view
}

function governed(
  name: string,
  resolved: Resolved,
  send: (args: unknown[], running: RunningOperation | undefined) => unknown,
): Method {
  return function commandUnderDeadline(...given) {
    const { args, callback } = splitCallback(given)
    // without anything to keep to, the client's own way with callbacks is kept as well
    if (!isBoundedNow(resolved)) return send(given, undefined)
    let running: RunningOperation
    try {
      running = startCallNow(resolved, { command: name.toLowerCase() })
    } catch (error) {
      return answer(Promise.reject(error), callback)
    }
    try {
      const inTime = noLongerThan(running.deadline.remaining(), name, args)
      const sent = running.within(() => send(inTime, running))
      if (isPromiseLike(sent))
        return answer(
          runNotingFailure(running, () => sent),
          callback,
        )
      running.end()
      return sent
    } catch (error) {
      throw running.fail(error)
    }
  }
}

/** The same object with other members; those that begin with an underscore are the library's own. */
function withMethods<T extends object>(target: T, replace: (name: string, member: unknown) => unknown): T {
  const methods = new Map<string, { readonly member: unknown; readonly method: unknown }>()
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof name === 'symbol' || name.startsWith('_') || member === undefined || member === null)
        return member
      const known = methods.get(name)
      if (known !== undefined && known.member === member) return known.method
      const method = replace(name, member)
      methods.set(name, { member, method })
      return method
    },
  })
}

const makesClients: ReadonlySet<string> = new Set([
  'withCommandOptions',
  'withTypeMapping',
  'withAbortSignal',
  'asap',
])

function isChain(name: string): boolean {
  return name === 'multi' || name === 'MULTI' || name === 'pipeline'
}

// Each in lower case: node-redis has most of them in two spellings.
const noCommands: ReadonlySet<string> = new Set([
  ...[
    'disconnect',
    'quit',
    'close',
    'destroy',
    'end',
    'ref',
    'unref',
    'reset',
    'resetifdirty',
    'duplicate',
    'legacy',
  ],
  ...['subscribe', 'psubscribe', 'ssubscribe', 'unsubscribe', 'punsubscribe', 'sunsubscribe', 'monitor'],
  ...[
    'getpubsublisteners',
    'extendpubsublisteners',
    'extendpubsubchannellisteners',
    'reauthenticate',
    'setdirtywatch',
  ],
  ...[
    'definecommand',
    'addbuiltincommand',
    'createbuiltincommand',
    'getbuiltincommands',
    'silentemit',
    'nodes',
  ],
  ...['createpool', 'execute', 'use'],
])

/** Whatever ends, listens, or goes on for longer than a call. */
function isNoCommand(name: string): boolean {
  if (name in EventEmitter.prototype || name in Object.prototype) return true
  return noCommands.has(name.toLowerCase()) || /(?:iterator|stream)$/i.test(name)
}

function isNamespace(member: unknown): member is object {
  return typeof member === 'object' && member !== null && Object.hasOwn(member, '_self')
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
