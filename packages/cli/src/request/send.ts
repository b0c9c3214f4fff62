import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { EventScanner } from './event-scanner.ts'
import type { Ending, Exchange, ExchangeError } from './exchange.ts'
import type { Target } from './target.ts'

/** How one request is sent. */
export interface Sending {
  /** The headers that carry the deadline, asked for once the connection stands; `undefined`: too late to send anything. */
  readonly stamps: () => Readonly<Record<string, string | readonly string[]>> | undefined
  /** Milliseconds from the start after which nothing more is waited for. */
  readonly patience: number
  readonly stop?: AbortSignal | undefined
}

const mostBodyKept = 8192
const longestTimer = 2_147_483_647

/** Sends the request on a connection of its own and reads the answer to its end. Never rejects; redirects are not followed. */
export function send(target: Target, sending: Sending): Promise<Exchange> {
  return new Promise((resolve) => {
    new Call(target, sending, resolve).start()
  })
}

class Call {
  readonly #target: Target
  readonly #sending: Sending
  readonly #resolve: (exchange: Exchange) => void
  readonly #startedAt = performance.now()
  readonly #scanner = new EventScanner(() => (this.#firstEventAt ??= this.#elapsed()))
  readonly #body: Buffer[] = []
  #request: ClientRequest | undefined
  #response: IncomingMessage | undefined
  #timer: NodeJS.Timeout | undefined
  #stamps: Record<string, string> = {}
  #sentAt: number | undefined
  #firstByteAt: number | undefined
  #firstEventAt: number | undefined
  #isEvents = false
  #bytes = 0
  #isOver = false

  constructor(target: Target, sending: Sending, resolve: (exchange: Exchange) => void) {
    this.#target = target
    this.#sending = sending
    this.#resolve = resolve
  }

  start(): void {
    const { url, method, headers, insecure } = this.#target
    const { stop, patience } = this.#sending
    if (stop?.aborted === true) {
      this.#end('stopped')
      return
    }
    stop?.addEventListener('abort', this.#onStop)
    this.#timer = setTimeout(() => this.#end('gave_up'), Math.min(longestTimer, Math.ceil(patience)))
    try {
      const options = { method, headers, agent: false as const, rejectUnauthorized: !insecure }
      this.#request = (url.protocol === 'https:' ? https : http).request(url, options)
    } catch (error) {
      this.#end('failed', errorOf(error))
      return
    }
    // Node writes the headers with the first byte of the body: until the connection stands, what is left still shrinks
    this.#request.on('socket', (socket) => onceConnected(socket, () => this.#write()))
    this.#request.on('response', (response) => this.#read(response))
    this.#request.on('error', (error) =>
      this.#end(this.#response === undefined ? 'failed' : 'cut_off', errorOf(error)),
    )
  }

  #write(): void {
    const stamps = this.#sending.stamps()
    if (stamps === undefined) {
      this.#end('not_sent')
      return
    }
    const request = this.#request
    if (request === undefined || this.#isOver) return
    const { headers, body } = this.#target
    for (const [name, value] of Object.entries(stamps)) {
      if (!Object.hasOwn(headers, name)) request.setHeader(name, value)
      this.#stamps[name] = String(request.getHeader(name))
    }
    if (body !== undefined) request.setHeader('content-length', body.length)
    this.#sentAt = this.#elapsed()
    request.end(body)
  }

  #read(response: IncomingMessage): void {
    this.#response = response
    this.#firstByteAt = this.#elapsed()
    this.#isEvents = /^text\/event-stream\b/i.test(response.headers['content-type'] ?? '')
    response.on('data', (chunk: Buffer) => {
      if (this.#isEvents) this.#scanner.add(chunk)
      else if (this.#bytes < mostBodyKept) this.#body.push(chunk.subarray(0, mostBodyKept - this.#bytes))
      this.#bytes += chunk.length
    })
    response.on('end', () => this.#end('complete'))
    response.on('error', (error) => this.#end('cut_off', errorOf(error)))
    response.on('close', () => this.#end('cut_off'))
  }

  readonly #onStop = (): void => this.#end('stopped')

  #end(ending: Ending, error?: ExchangeError): void {
    if (this.#isOver) return
    this.#isOver = true
    const total = this.#elapsed()
    clearTimeout(this.#timer)
    this.#sending.stop?.removeEventListener('abort', this.#onStop)
    // what comes of destroying it is of no interest
    this.#request?.on('error', () => {})
    this.#request?.destroy()
    this.#resolve({
      ending,
      stamps: this.#stamps,
      sentAt: this.#sentAt,
      firstByteAt: this.#firstByteAt,
      total,
      status: this.#response?.statusCode,
      headers: this.#response?.headers ?? {},
      bytes: this.#bytes,
      body: Buffer.concat(this.#body).toString('utf8'),
      events: this.#isEvents
        ? { count: this.#scanner.count, firstAt: this.#firstEventAt, error: this.#scanner.error }
        : undefined,
      error,
    })
  }

  #elapsed(): number {
    return performance.now() - this.#startedAt
  }
}

function onceConnected(socket: Socket, work: () => void): void {
  if (socket instanceof TLSSocket) socket.once('secureConnect', work)
  else if (socket.connecting) socket.once('connect', work)
  else work()
}

function errorOf(error: unknown): ExchangeError {
  // of several addresses each has failed in its own way
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error
  if (!(first instanceof Error)) return { code: 'ERROR', message: String(first) }
  const code = 'code' in first && typeof first.code === 'string' ? first.code : first.name
  return { code, message: first.message }
}
