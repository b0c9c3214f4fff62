import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One answer as its bytes say. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether its end has been seen. */
  readonly isWhole: boolean
}

/** Where a server listens; on 127.0.0.1 by default. */
export interface Address {
  readonly port: number
  readonly host?: string
}

/** A client that sees every byte: what it gets beyond its answer does not go unnoticed. */
export class RawClient {
  readonly socket: Socket
  received = ''
  isClosed = false
  #wake: () => void = () => undefined

  private constructor({ port, host }: Required<Address>) {
    this.socket = connect({ port, host, noDelay: true })
    this.socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1')
      this.#wake()
    })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
      this.#wake()
    })
  }

  /** Settles whether or not somebody listens. */
  static async to({ port, host = '127.0.0.1' }: Address): Promise<RawClient> {
    const client = new RawClient({ port, host })
    await Promise.race([once(client.socket, 'connect').catch(() => undefined), once(client.socket, 'close')])
    return client
  }

  send(text: string): void {
    this.socket.write(text)
  }

  get(path: string, headers: Readonly<Record<string, string | number>> = {}): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    this.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`)
  }

  get answers(): readonly RawAnswer[] {
    return parseAnswers(this.received, this.isClosed)
  }

  /** Settles once there are so many whole answers, or there will never be. */
  async answered(count = 1): Promise<readonly RawAnswer[]> {
    await this.until(() => this.answers.filter(({ isWhole }) => isWhole).length >= count)
    return this.answers
  }

  /** Settles once what was received is as wanted, or the connection has ended. */
  async until(isEnough: (client: RawClient) => boolean): Promise<void> {
    while (!isEnough(this) && !this.isClosed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  closed(): Promise<void> {
    return this.until(() => false)
  }

  /** Goes away as a crashed machine does that comes back: with RST. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

function parseAnswers(text: string, isClosed: boolean): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = rest.slice(0, end < 0 ? undefined : end).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
    if (Number.isNaN(status)) throw new Error(`this is no answer: ${JSON.stringify(rest.slice(0, 80))}`)
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    )
    if (end < 0) return [...answers, { status, headers, body: '', isWhole: false }]
    const { body, length, isWhole } = readBody(rest.slice(end + 4), { headers, isClosed })
    if (status !== 100) answers.push({ status, headers, body, isWhole })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}

function readBody(
  text: string,
  { headers, isClosed }: { readonly headers: Record<string, string>; readonly isClosed: boolean },
): { body: string; length: number; isWhole: boolean } {
  const declared = headers['content-length']
  if (declared !== undefined) {
    const body = text.slice(0, Number(declared))
    return { body, length: body.length, isWhole: body.length === Number(declared) }
  }
  if (headers['transfer-encoding'] !== 'chunked')
    return { body: text, length: text.length, isWhole: isClosed }
  let body = ''
  let at = 0
  for (;;) {
    const chunk = /^([\da-f]+)\r\n/.exec(text.slice(at))
    if (chunk === null) return { body, length: text.length, isWhole: false }
    const size = Number.parseInt(chunk[1] ?? '', 16)
    const start = at + chunk[0].length
    if (text.length < start + size + 2) return { body, length: text.length, isWhole: false }
    body += text.slice(start, start + size)
    at = start + size + 2
    if (size === 0) return { body, length: at, isWhole: true }
  }
}
