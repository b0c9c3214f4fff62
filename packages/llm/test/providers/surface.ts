import type { Fetch } from '@timebudget/clients/fetch'
import type { ModelEvent, SourceScope } from '@timebudget/llm'

/** Where a model is asked, and through what. */
export interface Place {
  readonly fetch: Fetch
  /** The provider's, without `/v1`. */
  readonly url: string
  /** The client's own timeout, ms. */
  readonly timeout?: number | undefined
}

/** One of our providers over an SDK whose client is left at its defaults. */
export interface ProviderSurface {
  readonly name: string
  /** Whether its events tell of reasoning. */
  readonly tellsReasoning: boolean
  /** Whether its counts tell how much of the output was reasoning. */
  readonly countsReasoning: boolean
  /** Whether its client has a timeout that can be put out of the way. */
  readonly hasTimeout: boolean
  /** Not the Responses API: its last event repeats the whole text, and OpenAI's SDK takes long to read a long line. */
  readonly takesMuch: boolean
  /** Whether its SDK passes on an error that the provider tells of within the stream. */
  readonly hearsErrors: boolean
  ask(place: Place, scope?: SourceScope): AsyncIterableIterator<ModelEvent>
}

/** What every surface asks. */
export const prompt = 'Say something that takes a while.'
export const modelName = 'test-model'
