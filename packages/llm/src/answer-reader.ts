import { createParser, type EventSourceParser } from 'eventsource-parser'
import { errorIn } from './protocols/json.ts'
import type { Protocol, Reading } from './protocols/protocol.ts'
import { protocolOf } from './protocols/which.ts'
import type { Tally } from './tally.ts'

/** What a piece of an answer's body has brought. */
export interface Progress {
  /** Whether anybody waits for it: text, reasoning, arguments of a tool. */
  readonly content: boolean
  /** Whether the provider says that nothing more will come. */
  readonly terminal: boolean
  /** What of it is no JSON, where JSON has to be. */
  readonly malformed: string | undefined
}

/** Reads an answer's body as it passes. */
export interface AnswerReader {
  take(bytes: Uint8Array): Progress
  /** At the end of the body: what is wrong with it, if it is not all there. */
  end(): string | undefined
}

/** Reads a stream of server-sent events; those of a protocol that nobody knows count as content, and may end anyhow. */
export class EventStreamReader implements AnswerReader {
  readonly #decoder = new TextDecoder()
  readonly #parser: EventSourceParser
  readonly #tally: Tally
  #protocol: Protocol | undefined
  #content = false
  #terminal = false
  #malformed: string | undefined

  constructor(tally: Tally, protocol: Protocol | undefined) {
    this.#tally = tally
    this.#protocol = protocol
    this.#parser = createParser({ onEvent: ({ data }) => this.#event(data) })
  }

  take(bytes: Uint8Array): Progress {
    this.#content = false
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }))
    return { content: this.#content, terminal: this.#terminal, malformed: this.#malformed }
  }

  end(): string | undefined {
    if (this.#terminal || this.#protocol === undefined || this.#tally.finish !== undefined) return undefined
    return 'the stream ended before its last event'
  }

  #event(text: string): void {
    if (this.#terminal || this.#malformed !== undefined) return
    const data = text.trim()
    if (data === '') return
    if (data === '[DONE]') {
      this.#terminal = true
      return
    }
    const json = parse(data)
    this.#protocol ??= protocolOf(json)
    if (json !== undefined || this.#protocol === undefined) this.#note(this.#read(json))
    else this.#malformed = `a chunk is no JSON: ${data.slice(0, 80)}`
  }

  #read(json: unknown): Reading {
    if (this.#protocol !== undefined) return this.#protocol.readEvent(json)
    const error = errorIn(json)
    return error === undefined ? { kind: 'content' } : { kind: 'error', error, terminal: true }
  }

  #note(reading: Reading): void {
    this.#tally.take(reading)
    if (reading.kind === 'content' || reading.kind === 'reasoning' || reading.kind === 'tool')
      this.#content = true
    if (reading.terminal === true) this.#terminal = true
  }
}

/** A longer body is passed on without a look at what it says. */
const longestWhole = 32 * 2 ** 20

/** Reads an answer that comes as one JSON. */
export class WholeReader implements AnswerReader {
  readonly #tally: Tally
  readonly #protocol: Protocol | undefined
  readonly #mustBeJson: boolean
  #chunks: Uint8Array[] = []
  #length = 0

  constructor(
    tally: Tally,
    { protocol, mustBeJson }: { readonly protocol: Protocol | undefined; readonly mustBeJson: boolean },
  ) {
    this.#tally = tally
    this.#protocol = protocol
    this.#mustBeJson = mustBeJson
  }

  take(bytes: Uint8Array): Progress {
    this.#length += bytes.byteLength
    if (this.#length <= longestWhole) this.#chunks.push(bytes)
    else this.#chunks = []
    // some send blanks, to keep the connection alive while the model works
    const content = bytes.some((byte) => byte > 0x20)
    return { content, terminal: false, malformed: undefined }
  }

  end(): string | undefined {
    if (this.#length > longestWhole) return undefined
    const json = parse(Buffer.concat(this.#chunks).toString())
    if (json === undefined) return this.#mustBeJson ? 'the body is no JSON' : undefined
    const error = errorIn(json)
    if (error !== undefined) this.#tally.take({ kind: 'error', error })
    else if (this.#protocol !== undefined) this.#tally.take(this.#protocol.readWhole(json))
    return undefined
  }
}

/** Of a stream in a format that nobody knows every piece is content. */
export class OpaqueReader implements AnswerReader {
  readonly #tally: Tally

  constructor(tally: Tally) {
    this.#tally = tally
  }

  take(bytes: Uint8Array): Progress {
    this.#tally.take({ kind: 'content' })
    return { content: bytes.byteLength > 0, terminal: false, malformed: undefined }
  }

  end(): undefined {
    return undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
