import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { http2StreamOf, isHttp2 } from './http2.ts'

/**
 * Watches one exchange. No single event of Node's tells a client that left from a normal end on every version and
 * protocol; the first of `aborted`, the response's `close` and the socket's `close` does, judged by what was finished.
 * A base and no part of what it tells: each object of its own costs every request.
 */
export abstract class ClientWatch {
  protected readonly request: IncomingMessage
  protected readonly response: ServerResponse
  readonly #socket: Socket | undefined
  #done = false
  /** Those that began queued on the same socket, if it is one of them. */
  #queued: Set<ClientWatch> | undefined

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    // under HTTP/2 a socket serves many streams, and the stream's own events suffice
    this.#socket = isHttp2(request) ? undefined : request.socket
  }

  /** The whole response has been handed over. Exactly one of the two is called, once. */
  protected abstract responseFinished(): void

  /** The client left, or its connection broke; `how` is `client_fin`, `client_reset`, `h2_rst_8`, ... */
  protected abstract clientGone(how: string): void

  /** Begins; decides at once if the client has left already. From now on `heardEnd` must be called. */
  protected watchClient(): void {
    if (this.hasEnded) return this.ended()
    // of its socket's end a response hears as `close`, but not while it waits for the one before it on that socket
    if (this.#socket === undefined || this.response.socket === this.#socket) return
    this.#queued = queuedOn(this.#socket)
    this.#queued.add(this)
  }

  /** What the request and the response emit, before anybody listens to it: cheaper than listeners of our own. */
  protected heardEnd(emitter: unknown, event: string | symbol): void {
    if (this.#done) return
    if (emitter === this.response) {
      if (event === 'finish') this.#finished()
      else if (event === 'close') this.ended()
    } else if (event === 'aborted') this.ended()
  }

  /** Nothing more reaches the client: how that came about is told from what had been finished. */
  ended(): void {
    this.#settle(this.#isGone() ? this.#how() : undefined)
  }

  /** Whether nothing more reaches the client, though no event may have told of it yet. */
  protected get hasEnded(): boolean {
    if (this.request.aborted || this.response.destroyed) return true
    return isHttp2(this.request)
      ? http2StreamOf(this.response)?.destroyed !== false
      : this.#socket?.destroyed === true
  }

  #finished(): void {
    // HTTP/2 emits `finish` on every close, after a reset too
    if (isHttp2(this.request)) this.ended()
    else this.#settle(undefined)
  }

  #settle(how: string | undefined): void {
    if (this.#done) return
    this.#done = true
    this.#queued?.delete(this)
    if (how === undefined) this.responseFinished()
    else this.clientGone(how)
  }

  #isGone(): boolean {
    const response = this.response
    if (this.request.aborted) return true
    if (isHttp2(this.request)) return !response.writableEnded || (http2StreamOf(response)?.rstCode ?? 0) > 0
    return !response.writableFinished || (this.#socket?.errored ?? null) !== null
  }

  #how(): string {
    if (isHttp2(this.request)) return `h2_rst_${http2StreamOf(this.response)?.rstCode ?? 0}`
    const failure = this.#socket?.errored ?? null
    if (failure !== null && 'code' in failure && failure.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      return 'server_request_timeout'
    // destroying a response destroys its socket for the same reason
    if (failure !== null) return failure === this.response.errored ? 'server_closed' : 'client_reset'
    return this.#socket?.readableEnded === true ? 'client_fin' : 'server_closed'
  }
}

const queuedKey: unique symbol = Symbol('timebudget.queued')
type QueueingSocket = Socket & { [queuedKey]?: Set<ClientWatch> }

/** The exchanges that began queued on a socket. One listener serves all, for the socket's life: ten print a warning. */
function queuedOn(socket: QueueingSocket): Set<ClientWatch> {
  let queued = socket[queuedKey]
  if (queued === undefined) {
    queued = socket[queuedKey] = new Set()
    socket.on('close', endQueued)
  }
  return queued
}

function endQueued(this: QueueingSocket): void {
  for (const watch of this[queuedKey] ?? []) watch.ended()
}
