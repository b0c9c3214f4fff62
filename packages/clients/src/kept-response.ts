import type { Outcome, RunningOperation } from '@timebudget/core'

/** How a response is kept under its operation. */
export interface Keeping {
  readonly running: RunningOperation
  readonly outcome: Outcome
  readonly redirected: boolean
  /** Says what a reader gets for the body's error or for the reason of the cut. */
  readonly toFailure: (running: RunningOperation, error: unknown) => Promise<unknown>
  /** The same response with a body that keeps the deadline, for whoever reads piece by piece. */
  readonly streamed: (body: ReadableStream<Uint8Array>) => Response
}

/** Whether it is Node's own kind of response, as nearly all are. */
export function canBeKept(response: Response): boolean {
  return Object.getPrototypeOf(response) === Response.prototype
}

/**
 * Lets the operation last as long as the response's body. Most bodies are read whole, which is done here: a stream of
 * ours between would cost as much as a third of the call (bench/outbound), so that there is one only for who asks.
 */
export function keepResponse(response: Response, body: ReadableStream<Uint8Array>, how: Keeping): Response {
  const kept: Kept = Object.assign(response, { [keptBy]: new Keeper(body, how) })
  return Object.setPrototypeOf(kept, keptPrototype()) as Response
}

const keptBy: unique symbol = Symbol('timebudget.kept')
type Kept = Response & { [keptBy]: Keeper }

class Keeper {
  readonly redirected: boolean
  readonly #body: ReadableStream<Uint8Array>
  readonly #how: Keeping
  #streamed: Response | undefined

  constructor(body: ReadableStream<Uint8Array>, how: Keeping) {
    this.redirected = how.redirected
    this.#body = body
    this.#how = how
    // while nobody reads it
    how.running.onCutOff((reason) => void body.cancel(reason).catch(ignore))
  }

  /** What stands in for the response from when its stream was asked for. */
  get streamed(): Response | undefined {
    return this.#streamed
  }

  /** Whether it can be read here, whole. */
  get isWhole(): boolean {
    return this.#streamed === undefined && !this.#body.locked
  }

  stream(): Response | undefined {
    if (this.isWhole) this.#streamed = this.#how.streamed(this.#body)
    return this.#streamed
  }

  read(): Promise<Uint8Array[]> {
    const reader = this.#body.getReader()
    const { running, outcome, toFailure } = this.#how
    return new Promise((resolve, reject) => {
      const fail = (error: unknown): void => void toFailure(running, error).then(reject, reject)
      running.onCutOff((reason) => {
        fail(reason)
        reader.cancel(reason).catch(ignore)
      })
      allOf(reader).then((chunks) => {
        const reason = running.end(outcome)
        if (reason === undefined) resolve(chunks)
        else fail(reason)
      }, fail)
    })
  }
}

async function allOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return chunks
    if (!(value instanceof Uint8Array)) throw new TypeError('a body holds something that is no Uint8Array')
    chunks.push(value)
  }
}

let prototype: Response | undefined

/** Made on first use: to touch Response loads all of Node's undici. */
function keptPrototype(): Response {
  prototype ??= makeKeptPrototype()
  return prototype
}

function makeKeptPrototype(): Response {
  const members = Object.getOwnPropertyDescriptors(keptMembers)
  if (!('bytes' in Response.prototype)) Reflect.deleteProperty(members, 'bytes') // Node 20
  return Object.create(Response.prototype, members) as Response
}

/** In place of Node's own; what has been read before goes there, to hear what is wrong with that. */
const keptMembers: ThisType<Kept> & Pick<Response, 'body' | 'bodyUsed' | 'redirected'> & Reading = {
  get body() {
    const streamed = this[keptBy].stream()
    return streamed === undefined ? ownOf(this, 'body') : streamed.body
  },
  get bodyUsed() {
    return this[keptBy].streamed?.bodyUsed ?? ownOf(this, 'bodyUsed')
  },
  get redirected() {
    return this[keptBy].redirected || ownOf(this, 'redirected')
  },
  clone() {
    return this[keptBy].stream()?.clone() ?? Response.prototype.clone.call(this)
  },
  async formData() {
    return this[keptBy].stream()?.formData() ?? Response.prototype.formData.call(this)
  },
  async blob() {
    return this[keptBy].stream()?.blob() ?? Response.prototype.blob.call(this)
  },
  async json() {
    return JSON.parse(await this.text()) as unknown
  },
  async text() {
    const keeper = this[keptBy]
    if (!keeper.isWhole) return keeper.streamed?.text() ?? Response.prototype.text.call(this)
    const chunks = await keeper.read()
    return decoder.decode(chunks.length === 1 ? chunks[0] : joined(chunks))
  },
  async arrayBuffer() {
    const keeper = this[keptBy]
    if (!keeper.isWhole) return keeper.streamed?.arrayBuffer() ?? Response.prototype.arrayBuffer.call(this)
    return joined(await keeper.read()).buffer
  },
  async bytes() {
    return new Uint8Array(await this.arrayBuffer())
  },
}
type Reading = Pick<Response, 'clone' | 'formData' | 'blob' | 'json' | 'text' | 'arrayBuffer'> & {
  bytes(): Promise<Uint8Array>
}

function ownOf<Name extends keyof Response>(response: Kept, name: Name): Response[Name] {
  return Reflect.get(Response.prototype, name, response) as Response[Name]
}

/** A copy, in memory of its own: what was read may be in use elsewhere. */
function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.byteLength, 0))
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.byteLength
  }
  return whole
}

const decoder = new TextDecoder()

function ignore(): void {}
