import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type CallObserver, destinationOf, type OutgoingCall } from './outgoing-call.ts'
import { isAskedForNow } from './undici-asker.ts'

/** A request as undici 6 and later publish it; the headers are names and values in turn. */
interface UndiciRequest {
  readonly origin: string | URL
  readonly path: string
  readonly method: string
  readonly headers: Array<string | readonly string[]>
}

/** Tells of every request that an undici makes, Node's own with its global fetch among them, until the returned function is called. */
export function observeUndiciCalls(observer: CallObserver): () => void {
  const created = (message: unknown): void => {
    const { request } = message as { readonly request: UndiciRequest }
    if (Array.isArray(request.headers) && request.method !== 'CONNECT') observer(new UndiciCall(request))
  }
  subscribe('undici:request:create', created)
  return function stopObserving() {
    unsubscribe('undici:request:create', created)
  }
}

function originOf({ origin }: UndiciRequest): string {
  return origin instanceof URL ? origin.origin : String(origin).replace(/\/+$/, '')
}

class UndiciCall implements OutgoingCall {
  readonly #request: UndiciRequest
  readonly #headers: UndiciRequest['headers']

  constructor(request: UndiciRequest) {
    this.#request = request
    this.#headers = request.headers
  }

  get url(): URL | undefined {
    return destinationOf(originOf(this.#request), this.#request.path)
  }

  get isInCallersContext(): boolean {
    return isAskedForNow()
  }

  header(name: string): string | undefined {
    const index = this.#indexOf(name)
    const value = index < 0 ? undefined : this.#headers[index + 1]
    return typeof value === 'string' ? value : value?.join()
  }

  setHeader(name: string, value: string | readonly string[]): void {
    const index = this.#indexOf(name)
    if (index < 0) this.#headers.push(name, value)
    else this.#headers[index + 1] = value
  }

  holds(name: string, value: readonly string[]): boolean {
    return this.#headers[this.#indexOf(name) + 1] === value
  }

  /** Even places hold names; a value may look like one. */
  #indexOf(name: string): number {
    return this.#headers.findIndex((text, index) => index % 2 === 0 && String(text).toLowerCase() === name)
  }
}
