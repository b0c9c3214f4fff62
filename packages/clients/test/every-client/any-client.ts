import type { TestContext } from 'vitest'
import type { ClientOptions } from '../../src/outgoing.ts'

/** Ways of an upstream to fail; what the errors of libraries are then known by, in their names, codes or texts. */
export const faults = {
  'refuses the connection': /ECONNREFUSED/,
  'has a name that nobody knows': /ENOTFOUND|EAI_AGAIN|Name resolution failed/,
  'has a certificate that nobody vouches for': /SELF_SIGNED_CERT|self-signed certificate/,
  'resets the connection before its answer': brokenConnection(),
  'closes the connection before its answer': brokenConnection(),
  'resets the connection in the middle of its answer': brokenConnection(),
} as const

function brokenConnection(): RegExp {
  return /ECONNRESET|UND_ERR_SOCKET|Connection (?:dropped|terminated|is closed)|Socket closed|RST_STREAM|stream closed/i
}

export type Fault = keyof typeof faults

/** Faults that leave nothing to be connected to. */
export function isUnreachable(behaviour: Behaviour): boolean {
  return (
    behaviour === 'refuses the connection' ||
    behaviour === 'has a name that nobody knows' ||
    behaviour === 'has a certificate that nobody vouches for'
  )
}

/** How the upstream treats each call: `is slow` for 150 ms, `stalls` in the middle of its answer. */
export type Behaviour = 'answers' | 'is slow' | 'is silent' | 'stalls' | Fault

/** What every client can be told. */
export type BenchOptions = Pick<ClientOptions<unknown>, 'timeout' | 'floor'>

/** A call as the upstream sees it. */
export interface SeenCall {
  /** Settles when the upstream knows that nobody waits for its answer any more. */
  abandoned(): Promise<unknown>
}

/** A client, under the deadline and bare, and the upstream that it calls. */
export interface Bench extends AsyncDisposable {
  /** Makes a call under the ambient deadline; its answer, to the last byte. */
  readonly call: () => Promise<unknown>
  /** The same call by the library alone. */
  readonly bare: () => Promise<unknown>
  /** How many milliseconds the latest call told the upstream that it has. */
  readonly told: () => number | undefined
  /** Grows with each connection that is opened and each call that is written. */
  readonly traffic: () => number
  /** The next call to arrive, or the oldest that nobody has asked for yet. */
  readonly nextCall: () => Promise<SeenCall>
  /** What the library has said of its connection, where it does not say so in the failure of a call. */
  readonly heard?: readonly unknown[]
}

/** A client library of whichever protocol, for the contract that all keep. */
export interface AnyClient {
  readonly name: string
  /** What its calls are called in the ledger. */
  readonly operation: string
  /** Whether our UpstreamError is among the causes of what failed by itself, or the library's error stays as it is. */
  readonly failsWith: 'our error' | "the library's error"
  /** A real server that behaves so, and a client of it; what connects before its first call is connected. */
  readonly bench: (behaviour: Behaviour, options: BenchOptions, context: TestContext) => Promise<Bench>
  /** Whether one bench at a time is enough: it governs the whole process, or its server takes a process for each connection. */
  readonly isAlone?: boolean
  /** The lines that cannot hold, each with the reason. */
  readonly cannot?: Readonly<Record<string, string>>
}

/** Holds a client to one line of the contract. */
export type Check = (client: AnyClient, context: TestContext) => Promise<void>

/** Lines of the contract by what they say. */
export type Lines = Readonly<Record<string, Check>>
