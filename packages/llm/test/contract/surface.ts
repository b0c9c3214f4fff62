import type { Fetch } from '@timebudget/clients/fetch'

/** A call that a test makes through an SDK. */
export interface Ask {
  readonly fetch: Fetch
  /** The provider's, without `/v1`. */
  readonly url: string
  readonly signal?: AbortSignal | undefined
  /** 0 unless a test is about what the SDK would do by itself. */
  readonly maxRetries?: number | undefined
}

/** One way in which an SDK calls a model. */
export interface Surface {
  readonly name: string
  /** Whether its own retries can be told to be such. */
  readonly numbersRetries: boolean
  /** Whether leaving its stream's loop reaches the fetch. */
  readonly cancelsOnBreak: boolean
  /** The answer's text, piece by piece; what fails is thrown. */
  stream(ask: Ask): AsyncIterable<string>
  whole(ask: Ask): Promise<string>
}

/** What every surface asks. */
export const prompt = 'Say something that takes a while.'
export const model = 'test-model'
