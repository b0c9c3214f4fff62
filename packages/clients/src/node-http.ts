import type { RunningOperation } from '@timebudget/core'
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https, { type RequestOptions } from 'node:https'
import { governRequest, refuseRequest } from './governed-request.ts'
import { isGoverned, noteInstrumentation } from './governed.ts'
import { type NodeCall, type ReadNodeCall, readNodeCall } from './node-call.ts'
import {
  type ClientOptions,
  deadlineOfCall,
  headersFor,
  isBounded,
  type ResolvedClientOptions,
  resolveClientOptions,
  startCall,
} from './outgoing.ts'

export type { ClientOptions, NodeCall }

/** `request` of node:http and of node:https. */
export interface NodeRequest {
  (options: RequestOptions | string | URL, onResponse?: (response: IncomingMessage) => void): ClientRequest
  (
    url: string | URL,
    options: RequestOptions,
    onResponse?: (response: IncomingMessage) => void,
  ): ClientRequest
}

/**
 * `http.request` or `https.request`, as the URL's protocol says, under the ambient deadline: it carries what is left to
 * the next service, is destroyed when that is used up, and stands in the ledger. Without a deadline it is Node's.
 * @throws BudgetTooSmallError before any I/O if less than the floor is left; the deadline's reason if it has ended.
 */
export const request: NodeRequest = wrapRequest()

/** As `request`, for a request without a body, which it ends. */
export const get: NodeRequest = (...args: unknown[]) => {
  const getting: ClientRequest = Reflect.apply(request, undefined, args)
  getting.end()
  return getting
}

/**
 * A `request` of node:http or node:https under the ambient deadline, or that of the signal it is given.
 *
 *     const request = wrapRequest(https.request, { operation: 'search', floor: '50ms' })
 *
 * The returned function throws BudgetTooSmallError before any I/O if less than the floor is left. The request, and after
 * the headers the response, is destroyed with OperationTimeoutError after its own timeout and with the deadline's reason
 * once that has ended; other errors are Node's own.
 * @throws TypeError that names the option which cannot be read.
 */
export function wrapRequest(base?: NodeRequest, options: ClientOptions<NodeCall> = {}): NodeRequest {
  const resolved = resolveClientOptions(options, 'http')
  const defaultProtocol = base === https.request ? 'https:' : 'http:'
  return function requestUnderDeadline(...given: unknown[]): ClientRequest {
    // instrumentations of node:http lose a callback that comes after an undefined
    const args = given.includes(undefined) ? given.filter((argument) => argument !== undefined) : given
    const call = readNodeCall(args, defaultProtocol)
    const deadline = deadlineOfCall(call?.options.signal ?? undefined)
    // looked up at each call, since instrumentations replace them
    const native = base ?? (call?.protocol === 'https:' ? https : http).request
    if (call === undefined || !isBounded({ deadline }, resolved)) return make(native, args)
    const running = startCall(resolved, call, { deadline })
    // Node's own would parse it once more; another one may want what the caller gave
    if (base === undefined && call.isUrlText) args[0] = call.url
    const stamped = needsHeadersAtOnce(call.options) ? withStamps(args, call, { running, resolved }) : args
    const made = startRequest(native, stamped, running)
    governRequest(made, running, { to: call, resolved })
    return made
  }
}

function startRequest(base: NodeRequest, args: readonly unknown[], running: RunningOperation): ClientRequest {
  isWrapping = true
  try {
    return running.within(() => make(base, args))
  } catch (error) {
    throw running.fail(error)
  } finally {
    isWrapping = false
  }
}

/** A request asks its agent for a socket while it is being made: an agent of ours has nothing more to do then. */
let isWrapping = false

function make(base: NodeRequest, args: readonly unknown[]): ClientRequest {
  return Reflect.apply(base, undefined, args)
}

/** Node writes such headers down while it makes the request; all others can be set afterwards. */
function needsHeadersAtOnce({ headers }: RequestOptions): boolean {
  if (headers === undefined || headers === null) return false
  return Array.isArray(headers) || Object.keys(headers).some((name) => name.toLowerCase() === 'expect')
}

function withStamps(
  args: readonly unknown[],
  { options, optionsAt, url }: ReadNodeCall,
  {
    running,
    resolved,
  }: { readonly running: RunningOperation; readonly resolved: ResolvedClientOptions<NodeCall> },
): readonly unknown[] {
  const stamps = headersFor(url, running.deadline, resolved)
  const isKept = (name: unknown): boolean => !resolved.headerNames.includes(String(name).toLowerCase())
  const headers = Array.isArray(options.headers)
    ? stampedList(options.headers, stamps, isKept)
    : {
        ...Object.fromEntries(Object.entries(options.headers ?? {}).filter(([name]) => isKept(name))),
        ...stamps,
      }
  return args.with(optionsAt, { ...options, headers })
}

/** Node takes a list of names and values in turn, or one of pairs. */
function stampedList(
  headers: readonly unknown[],
  stamps: Readonly<Record<string, string>>,
  isKept: (name: unknown) => boolean,
): unknown[] {
  if (Array.isArray(headers[0])) {
    const pairs = headers.filter((pair) => Array.isArray(pair) && isKept(pair[0]))
    return [...pairs, ...Object.entries(stamps)]
  }
  const kept = headers.filter((_, index) => isKept(headers[index - (index % 2)]))
  return [...kept, ...Object.entries(stamps).flat()]
}

/** What a `DeadlineAgent` takes. */
export interface DeadlineAgentOptions extends ClientOptions<NodeCall> {
  /** Which opens, keeps and closes the connections; `http.globalAgent`, and for https an agent of node:https. */
  readonly agent?: http.Agent | https.Agent | undefined
}

/**
 * An agent for libraries that take nothing else: puts every request that it is asked a connection for under the ambient
 * deadline of whoever makes it. The connections are the wrapped agent's.
 *
 *     new S3Client({ requestHandler: { httpsAgent: new DeadlineAgent({ agent: new https.Agent({ keepAlive: true }) }) } })
 *
 * A request that is refused fails with BudgetTooSmallError as its 'error' event. One whose headers are given as a list,
 * or that expects a `100 Continue`, has written them down before: the deadline ends it but does not travel with it.
 */
export class DeadlineAgent extends http.Agent {
  readonly #agent: AskedAgent
  readonly #resolved: ResolvedClientOptions<NodeCall>

  /** @throws TypeError that names the option which cannot be read. */
  constructor({ agent = http.globalAgent, ...options }: DeadlineAgentOptions = {}) {
    const asked = agent as AskedAgent
    super(asked.options)
    // what Node, and whoever wants to see how many sockets there are, reads of an agent
    const { protocol, defaultPort, maxSockets, sockets, freeSockets, requests } = asked
    Object.assign(this, { protocol, defaultPort, maxSockets, sockets, freeSockets, requests })
    this.#agent = asked
    this.#resolved = resolveClientOptions(options, 'http')
    noteInstrumentation()
  }

  /** Called by Node for each request. */
  addRequest(asking: ClientRequest, options: RequestOptions): void {
    if (this.#govern(asking, options)) this.#agent.addRequest(asking, options)
  }

  override destroy(): void {
    this.#agent.destroy()
  }

  #govern(asking: ClientRequest, options: RequestOptions): boolean {
    const resolved = this.#resolved
    const deadline = deadlineOfCall(undefined)
    if (!isBounded({ deadline }, resolved) || isWrapping || isGoverned(deadline)) return true
    const call = readNodeCall([options], this.#agent.protocol)
    if (call === undefined) return true
    try {
      const running = startCall(resolved, call, { deadline })
      governRequest(asking, running, { to: call, resolved })
      return true
    } catch (error) {
      refuseRequest(asking, error)
      return false
    }
  }
}

/** An agent as Node uses it: more than its types tell. */
type AskedAgent = http.Agent & {
  readonly options: http.AgentOptions
  readonly protocol: string
  readonly defaultPort: number
  addRequest(request: ClientRequest, options: RequestOptions): void
}
