import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Agent, ClientRequest } from 'node:http'
import { type CallObserver, destinationOf, type OutgoingCall } from './outgoing-call.ts'

/** Tells of every request that node:http and node:https make, until the returned function is called. */
export function observeHttpCalls(observer: CallObserver): () => void {
  const created = (message: unknown): void => {
    const { request } = message as { readonly request: unknown }
    if (request instanceof ClientRequest) tell(request, observer)
  }
  subscribe('http.client.request.created', created)
  const release = tellsOfNewRequests() ? undefined : observeAgents(observer)
  return function stopObserving() {
    unsubscribe('http.client.request.created', created)
    release?.()
  }
}

/** Whether this Node publishes every request that it makes: from 22.12 on, to be on the safe side from 24 on. */
function tellsOfNewRequests(): boolean {
  return Number.parseInt(process.versions.node, 10) >= 24
}

interface AskedAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void
}

/** Before, only an agent hears of a request whose headers have not left yet: it is asked for a connection. */
function observeAgents(observer: CallObserver): () => void {
  const agents = Agent.prototype as unknown as AskedAgent
  const original = agents.addRequest
  let isObserving = true
  const observed: AskedAgent['addRequest'] = function addRequest(this: AskedAgent, request, ...rest) {
    if (isObserving) tell(request, observer)
    return original.call(this, request, ...rest)
  }
  agents.addRequest = observed
  return function release() {
    isObserving = false
    // whoever came after us would be cut off as well
    if (agents.addRequest === observed) agents.addRequest = original
  }
}

function tell(request: ClientRequest, observer: CallObserver): void {
  // with a list of headers, or an `Expect`, Node writes them down while it makes the request
  if (!request.headersSent && request.method !== 'CONNECT') observer(new HttpCall(request))
}

/** Node keeps the port only in the Host header, if that is its own. */
function originOf(request: ClientRequest): string {
  const host = request.host.includes(':') ? `[${request.host}]` : request.host
  const written = request.getHeader('host')
  const isOwn = typeof written === 'string' && written.startsWith(`${host}:`)
  return `${request.protocol}//${isOwn ? written : host}`
}

class HttpCall implements OutgoingCall {
  readonly isInCallersContext = true
  readonly #request: ClientRequest

  constructor(request: ClientRequest) {
    this.#request = request
  }

  get url(): URL | undefined {
    return destinationOf(originOf(this.#request), this.#request.path)
  }

  header(name: string): string | undefined {
    return this.#request.getHeader(name)?.toString()
  }

  setHeader(name: string, value: string | readonly string[]): void {
    this.#request.setHeader(name, value)
  }

  holds(name: string, value: readonly string[]): boolean {
    const held: unknown = this.#request.getHeader(name)
    return held === value
  }
}
