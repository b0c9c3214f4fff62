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

  /** Begins; decides at once if the client has left already. */
  start(): void {
    if (this.hasEnded) {
      this.#decide()
      return
    }
    this.#request.on('aborted', this.#onEnd)
    // first: whoever observes the request has its outcome before their own listeners run
    this.#response.prependListener('close', this.#onEnd)
    this.#response.on('finish', this.#onFinish)
    if (this.#socket !== undefined) addSocketListener(this.#socket, this.#onEnd)
  }

  stop(): void {
    this.#done = true
    this.#request.removeListener('aborted', this.#onEnd)
    this.#response.removeListener('close', this.#onEnd)
    this.#response.removeListener('finish', this.#onFinish)
    if (this.#socket !== undefined) removeSocketListener(this.#socket, this.#onEnd)
  }

  /** Whether nothing more reaches the client, though no event may have told of it yet. */
  get hasEnded(): boolean {
    if (this.#request.aborted || this.#response.destroyed) return true
    return isHttp2(this.#request)
      ? http2StreamOf(this.#response)?.destroyed !== false
      : this.#socket?.destroyed === true
  }

  readonly #onFinish = (): void => {
    // HTTP/2 emits `finish` on every close, after a reset too
    if (isHttp2(this.#request)) this.#decide()
    else this.#settle(undefined)
  }

  readonly #onEnd = (): void => this.#decide()

  #decide(): void {
    this.#settle(this.#isGone() ? this.#how() : undefined)
  }

  #settle(how: string | undefined): void {
    if (this.#done) return
    this.stop()
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

// One listener a socket, however many pipelined requests wait on it: more than ten would print a warning.
const listenersOf = new WeakMap<Socket, Set<() => void>>()

function onSocketClose(this: Socket): void {
  for (const listener of [...(listenersOf.get(this) ?? [])]) listener()
}

function addSocketListener(socket: Socket, listener: () => void): void {
  let listeners = listenersOf.get(socket)
  if (listeners === undefined) {
    listeners = new Set()
    listenersOf.set(socket, listeners)
    socket.on('close', onSocketClose)
  }
  listeners.add(listener)
}

function removeSocketListener(socket: Socket, listener: () => void): void {
  const listeners = listenersOf.get(socket)
  if (listeners === undefined) return
  listeners.delete(listener)
  if (listeners.size > 0) return
  listenersOf.delete(socket)
  socket.removeListener('close', onSocketClose)
}
