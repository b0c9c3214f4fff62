import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as startRequest } from 'node:http'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { deferred } from './deferred.ts'

/** A whole answer. */
export interface Reply extends Head {
  /** Whether it came over a connection that had served another call before. */
  readonly isReused: boolean
  readonly body: string
}

export interface Head {
  readonly statusText: string
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** What to ask for. */
export interface Call {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** Sent whole; none if it is left out. */
  readonly body?: string | Buffer
  /** Leaves the body open, to be written by the test. */
  readonly isUploading?: boolean
  /** The connection to use; one for this call alone if it is left out. */
  readonly connection?: Connection
}

/** A call under way. */
export interface Calling {
  /** Rejects if the connection breaks before the answer is whole. */
  readonly reply: Promise<Reply>
  readonly head: Promise<Head>
  /** The first part of the answer's body. */
  readonly firstPart: Promise<string>
  write(chunk: string | Buffer): void
  end(): void
  /** The client goes away. */
  leave(): void
  /** The client does not read on until it leaves. */
  pause(): void
}

export interface Target {
  readonly port: number
  readonly protocol: 'http/1.1' | 'h2'
}

/** One connection that is kept: calls over it come one after the other (HTTP/1) or side by side (HTTP/2). */
export interface Connection {
  readonly agent: Agent
  readonly session: ClientHttp2Session | undefined
  close(): void
}

export function connection({ port, protocol }: Target): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const session = protocol === 'h2' ? connect(`http://localhost:${port}`) : undefined
  session?.on('error', () => {})
  return {
    agent,
    session,
    close() {
      agent.destroy()
      session?.destroy()
    },
  }
}

/** Asks and waits for the whole answer. */
export function call(target: Target, options: Call = {}): Promise<Reply> {
  return begin(target, options).reply
}

/** Asks, and lets the test decide how it goes on. */
export function begin(target: Target, options: Call = {}): Calling {
  const own = options.connection ?? connection(target)
  const reception = new Reception()
  const calling =
    own.session === undefined
      ? beginHttp1(target.port, { ...options, connection: own }, reception)
      : beginHttp2(own.session, options, reception)
  const close = (): void => {
    if (options.connection === undefined) own.close()
  }
  reception.reply.then(close, close)
  return calling
}

/** Three views of one answer; whoever does not ask for one of them does not want to hear of its failure. */
class Reception {
  readonly #head = deferred<Head>()
  readonly #firstPart = deferred<string>()
  readonly #reply = deferred<Reply>()
  readonly #chunks: Buffer[] = []
  #known: Head | undefined
  isReused = false

  constructor() {
    for (const promise of [this.head, this.firstPart, this.reply]) promise.catch(() => {})
  }

  get head(): Promise<Head> {
    return this.#head.promise
  }

  get firstPart(): Promise<string> {
    return this.#firstPart.promise
  }

  get reply(): Promise<Reply> {
    return this.#reply.promise
  }

  /** A HEAD ends before it has been answered. */
  get hasBegun(): boolean {
    return this.#known !== undefined
  }

  begin(head: Head): void {
    this.#known = head
    this.#head.resolve(head)
  }

  take(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#firstPart.resolve(chunk.toString())
  }

  complete(): void {
    if (this.#known === undefined) return this.fail(new Error('there was no answer'))
    this.#reply.resolve({
      ...this.#known,
      isReused: this.isReused,
      body: Buffer.concat(this.#chunks).toString(),
    })
    this.#firstPart.resolve('')
  }

  fail(error: Error): void {
    for (const side of [this.#head, this.#firstPart, this.#reply]) side.reject(error)
  }
}

function beginHttp1(port: number, options: Call & { connection: Connection }, reception: Reception): Calling {
  const { body, path = '/', headers = {} } = options
  const method = options.method ?? (body === undefined && options.isUploading !== true ? 'GET' : 'POST')
  const outgoing = startRequest({ port, method, path, headers, agent: options.connection.agent })
  let incoming: IncomingMessage | undefined
  outgoing.on('response', (response) => {
    incoming = response
    reception.isReused = outgoing.reusedSocket
    reception.begin({
      status: response.statusCode ?? 0,
      statusText: response.statusMessage ?? '',
      headers: response.headers,
    })
    response.on('data', (chunk: Buffer) => reception.take(chunk))
    response.on('end', () => {
      if (response.complete) reception.complete()
      else reception.fail(new Error('the answer was cut off'))
    })
    response.on('error', (error) => reception.fail(error))
  })
  outgoing.on('error', (error) => reception.fail(error))
  outgoing.on('close', () => reception.fail(new Error('the connection was closed')))
  if (options.isUploading === true) outgoing.flushHeaders()
  else outgoing.end(body)
  return {
    reply: reception.reply,
    head: reception.head,
    firstPart: reception.firstPart,
    write: (chunk) => void outgoing.write(chunk),
    end: () => void outgoing.end(),
    leave: () => void outgoing.destroy(),
    pause: () => void incoming?.pause(),
  }
}

function beginHttp2(session: ClientHttp2Session, options: Call, reception: Reception): Calling {
  const { body, path = '/', headers = {} } = options
  const method = options.method ?? (body === undefined && options.isUploading !== true ? 'GET' : 'POST')
  const stream = session.request(
    { ':method': method, ':path': path, ...headers },
    { endStream: body === undefined && options.isUploading !== true },
  )
  if (body !== undefined) stream.end(body)
  reception.isReused = options.connection !== undefined
  stream.on('response', (received) => {
    reception.begin({ status: Number(received[':status']), statusText: '', headers: received })
  })
  stream.on('data', (chunk: Buffer) => reception.take(chunk))
  stream.on('error', (error) => reception.fail(error))
  const conclude = (): void => {
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR && stream.readableEnded) reception.complete()
    else reception.fail(new Error(`the stream was closed with ${stream.rstCode}`))
  }
  // Node's client does not close a stream as long as something of its upload is left to be written
  stream.on('end', () => {
    if (reception.hasBegun) setImmediate(conclude)
  })
  stream.on('close', conclude)
  return {
    reply: reception.reply,
    head: reception.head,
    firstPart: reception.firstPart,
    write: (chunk) => void stream.write(chunk),
    end: () => void stream.end(),
    leave: () => stream.close(constants.NGHTTP2_CANCEL),
    pause: () => void stream.pause(),
  }
}
