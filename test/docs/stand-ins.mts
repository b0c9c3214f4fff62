// What the blocks of the guide take for the reader's own, when they are run.
import express, { type Express } from 'express'

export const app: Express = express()
export const url = 'http://index.internal/search'
export const question = 'Where is my parcel?'
export const prompt = question

export const search = async (): Promise<string[]> => ['a document']
export const rank = async (documents: readonly string[]): Promise<readonly string[]> => documents
export const rerank = async (): Promise<string[]> => ['a document']
export const generate = async (): Promise<string> => 'an answer'
export const answer = generate
export const audit = async (): Promise<void> => undefined
export const rebuildIndex = audit
export const report = (): void => undefined
export async function* tokensOf(): AsyncGenerator<string> {
  yield 'an'
}
