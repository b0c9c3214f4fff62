// What the guides take for the reader's own, so that the printed code needs no scaffolding. No block has to use it.
import type { Client, Metadata, ServiceError } from '@grpc/grpc-js'
import type { ConnectRouter } from '@connectrpc/connect'
import type { SpanExporter, Sampler } from '@opentelemetry/sdk-trace-base'
import type { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import type { AnswerCache, AskModel, JobQueue, Profile, Rung } from '@timebudget/llm'
import type { LanguageModel } from 'ai'
import type { Express, Request, Response as ExpressResponse } from 'express'
import type { IncomingMessage } from 'node:http'
import type OpenAI from 'openai'

export declare const app: Express
export declare const response: ExpressResponse
export declare function report(...anything: readonly unknown[]): void
export declare function isAdmin(request: IncomingMessage | Request): boolean
export declare const log: { warn(text: string): void }
export declare const controller: AbortController

export declare const model: string
export declare const url: string
export declare const address: string
export declare const baseUrl: string
export declare const query: string
export declare const password: string
export declare const signal: AbortSignal
export declare function callback(error: ServiceError | null, reply: unknown): void

export declare const prompt: string
export declare const question: string
export declare const tenant: string
export declare const id: string
export declare const messages: OpenAI.ChatCompletionMessageParam[]
export interface Question {
  readonly question: string
  readonly messages: OpenAI.ChatCompletionMessageParam[]
}

export declare function search(query: unknown, options?: unknown): Promise<string[]>
export declare function rank(documents: readonly string[], options?: unknown): Promise<string[]>
export declare function rerank(found: unknown, options?: unknown): Promise<string[]>
export declare function generate(input: unknown, options?: unknown): Promise<string>
export declare function ask(model: string, prompt: string, options?: unknown): Promise<string>
export declare function answer(question: string): Promise<string>
export declare function audit(question: string): Promise<void>
export declare function rebuildIndex(): Promise<void>
export declare function work(options?: unknown): Promise<string>
export declare function stream(prompt: string, options?: unknown): AsyncIterable<string>
export declare function tokensOf(...anything: readonly unknown[]): AsyncIterable<string>
export declare function write(token: string): void

export declare const client: OpenAI
export declare const llmFetch: typeof globalThis.fetch
export declare const source: AsyncIterable<string>
export declare const profile: Profile
export declare const askBig: AskModel<Question>
export declare const rungs: readonly [Rung<string>, ...Rung<string>[]]
export declare const bento: AnswerCache
export declare const queue: JobQueue
export declare function openai(model: string): Exclude<LanguageModel, string>

export declare const sampler: Sampler
export declare const exporter: SpanExporter
export declare const MyInstrumentation: new () => HttpInstrumentation

export declare const SearchClient: new (...args: ConstructorParameters<typeof Client>) => {
  find(
    request: { readonly q: string },
    metadata: Metadata,
    options: { readonly deadline?: number },
    callback: (error: ServiceError | null, reply: unknown) => void,
  ): void
}
export declare const q: string
export declare function routes(router: ConnectRouter): void

export declare const output: { append(text: string): void }
export declare const status: { textContent: string }
export declare const stopButton: { onclick: () => void }
