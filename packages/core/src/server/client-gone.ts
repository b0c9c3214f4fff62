import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { http2StreamOf, isHttp2 } from './http2.ts'

/** Who wants to know how the exchange with the client ended: exactly one of the two is called, once. */
export interface ClientObserver {
  /** The whole response has been handed over. */
  responseFinished(): void
  /** The client left, or its connection broke; `how` is `client_fin`, `client_reset`, `h2_rst_8`, ... */
  clientGone(how: string): void
}

/**
 * Watches one exchange. No single event of Node's tells a client that left from a normal end on every version and
 * protocol; the first of `aborted`, the response's `close` and the socket's `close` does, judged by what was finished.
 */
export class ClientWatch {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #observer: ClientObserver
  readonly #socket: Socket | undefined
  #done = false

  constructor(request: IncomingMessage, response: ServerResponse, observer: ClientObserver) {
    this.#request = request
    this.#response = response
    this.#observer = observer
    // under HTTP/2 a socket serves many streams, and the stream's own events suffice
    this.#socket = isHttp2(request) ? undefined : request.socket
  }

  /** Begins; decides at once if the client has left already. From now on `heard` must be called. */
  start(): void {
    if (this.hasEnded) this.ended()
    else if (this.#socket !== undefined) watchSocket(this.#socket, this)
  }

  /** What the request and the response emit, before anybody listens to it: cheaper than listeners of our own. */
  heard(emitter: unknown, event: string | symbol): void {
    if (this.#done) return
    if (emitter === this.#response) {
      if (event === 'finish') this.#finished()
      else if (event === 'close') this.ended()
    } else if (event === 'aborted') this.ended()
  }

  /** Nothing more reaches the client: how that came about is told from what had been finished. */
  ended(): void {
    this.#settle(this.#isGone() ? this.#how() : undefined)
  }

  /** Whether nothing more reaches the client, though no event may have told of it yet. */
  get hasEnded(): boolean {
    if (this.#request.aborted || this.#response.destroyed) return true
    return isHttp2(this.#request)
      ? http2StreamOf(this.#response)?.destroyed !== false
      : this.#socket?.destroyed === true
  }

  #finished(): void {
    // HTTP/2 emits `finish` on every close, after a reset too
    if (isHttp2(this.#request)) this.ended()
    else this.#settle(undefined)
  }

  #settle(how: string | undefined): void {
    if (this.#done) return
    this.#done = true
    if (this.#socket !== undefined) leaveSocket(this.#socket, this)
    if (how === undefined) this.#observer.responseFinished()
    else this.#observer.clientGone(how)
  }

  #isGone(): boolean {
    const response = this.#response
    if (this.#request.aborted) return true
    if (isHttp2(this.#request)) return !response.writableEnded || (http2StreamOf(response)?.rstCode ?? 0) > 0
    return !response.writableFinished || (this.#socket?.errored ?? null) !== null
  }

  #how(): string {
    if (isHttp2(this.#request)) return `h2_rst_${http2StreamOf(this.#response)?.rstCode ?? 0}`
    const failure = this.#socket?.errored ?? null
    if (failure !== null && 'code' in failure && failure.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      return 'server_request_timeout'
    // destroying a response destroys its socket for the same reason
    if (failure !== null) return failure === this.#response.errored ? 'server_closed' : 'client_reset'
    return this.#socket?.readableEnded === true ? 'client_fin' : 'server_closed'
  }
}

const watchesKey: unique symbol = Symbol('timebudget.watches')
type WatchedSocket = Socket & { [watchesKey]?: Set<ClientWatch> }

/**
 * One listener a socket, for all its life: to add and to remove one costs a request a microsecond, and ten of them, for
 * pipelined requests, would print a warning. It holds those requests only that are still on.
 */
function watchSocket(socket: WatchedSocket, watch: ClientWatch): void {
  let watches = socket[watchesKey]
  if (watches === undefined) {
    watches = new Set()
    socket[watchesKey] = watches
    socket.on('close', onSocketClose)
  }
  watches.add(watch)
}

function leaveSocket(socket: WatchedSocket, watch: ClientWatch): void {
  socket[watchesKey]?.delete(watch)
}

function onSocketClose(this: WatchedSocket): void {
  for (const watch of [...(this[watchesKey] ?? [])]) watch.ended()
}
