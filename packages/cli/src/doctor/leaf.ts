import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import https from 'node:https'
import { once } from 'node:events'

/** A call that the service made to the leaf. */
export interface LeafCall {
  /** Names in lower case; a header that came twice is joined by commas. */
  readonly headers: IncomingMessage['headers']
  /** Settles when the service has gone or has been answered. */
  readonly over: Promise<'left' | 'answered'>
}

/** Where the leaf listens. */
export interface LeafAddress {
  readonly host: string
  readonly port: number
}

/**
 * A server that stands in for one that the examined service calls, or in front of it: sees the deadline that is passed on,
 * and the moment at which the service stops waiting.
 */
export class Leaf {
  readonly #server: Server
  readonly #upstream: URL | undefined
  readonly #held = new Set<() => void>()
  #isHolding = false
  #onCall: ((call: LeafCall) => void) | undefined

  private constructor(upstream: URL | undefined) {
    this.#upstream = upstream
    this.#server = createServer((incoming, response) => this.#serve(incoming, response))
  }

  /** @throws Error if nobody can listen there. */
  static async listen({ host, port }: LeafAddress, upstream: URL | undefined): Promise<Leaf> {
    const leaf = new Leaf(upstream)
    leaf.#server.listen(port, host)
    try {
      await once(leaf.#server, 'listening')
    } catch (error) {
      throw new Error(`--leaf: cannot listen on ${host}:${port}`, { cause: error })
    }
    return leaf
  }

  /** The next call that comes; answered only once `release` is called. */
  hold(): Promise<LeafCall> {
    this.#isHolding = true
    return this.next()
  }

  /** The next call that comes. */
  next(): Promise<LeafCall> {
    return new Promise((resolve) => {
      this.#onCall = resolve
    })
  }

  /** Answers what is held, and all that comes. */
  release(): void {
    this.#isHolding = false
    this.#onCall = undefined
    for (const answer of [...this.#held]) answer()
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    const answer = (): void => {
      this.#held.delete(answer)
      if (!response.destroyed) this.#answer(incoming, response)
    }
    const over = new Promise<'left' | 'answered'>((resolve) => {
      response.on('close', () => {
        this.#held.delete(answer)
        resolve(response.writableFinished ? 'answered' : 'left')
      })
    })
    this.#onCall?.({ headers: incoming.headers, over })
    this.#onCall = undefined
    if (this.#isHolding) this.#held.add(answer)
    else answer()
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    if (this.#upstream === undefined) {
      incoming.resume()
      response.setHeader('content-type', 'application/json')
      response.end('{}')
      return
    }
    const url = new URL(incoming.url ?? '/', this.#upstream)
    const forwarded = (url.protocol === 'https:' ? https.request : request)(
      new URL(url.pathname + url.search, this.#upstream),
      { method: incoming.method, headers: { ...incoming.headers, host: this.#upstream.host } },
      (answered) => {
        response.writeHead(answered.statusCode ?? 502, answered.headers)
        answered.pipe(response)
        answered.on('error', () => response.destroy())
      },
    )
    forwarded.on('error', () => {
      if (response.headersSent) response.destroy()
      else response.writeHead(502).end()
    })
    response.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  }
}
