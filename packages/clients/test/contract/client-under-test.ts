import type { ClientOptions } from '../../src/outgoing.ts'

/** What every client can be told; `connections` bounds the connections to one host. */
export type ContractOptions = Omit<ClientOptions<unknown>, 'operation'> & {
  readonly operation?: string | (() => string) | undefined
  readonly connections?: number | undefined
}

export interface Call {
  readonly method?: 'GET' | 'POST' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** What any client's response comes to; `text` reads the body. */
export interface Answer {
  readonly status: number
  header(name: string): string | undefined
  text(): Promise<string>
}

export type Caller = (url: string, call?: Call) => Promise<Answer>

/** A client that is put under the deadline. */
export interface GovernedClient extends AsyncDisposable {
  readonly call: Caller
}

/** A client library, for the contract that all keep. */
export interface ClientUnderTest {
  readonly name: string
  /** What its calls are called in the ledger. */
  readonly operation: string
  /** The library as it is, without us. */
  readonly bare: Caller
  readonly govern: (options: ContractOptions) => GovernedClient
  /** Whether `connections` means something to it. */
  readonly isBounded: boolean
  /** Whether it governs all calls of the process. */
  readonly isProcessWide?: boolean
}
