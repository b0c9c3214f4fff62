import type { ProviderError } from './protocol.ts'

/** An object of JSON whose members are not known. */
export type JsonObject = Readonly<Record<string, unknown>>

/** What a stranger sent, as an object; an empty one if it is something else. */
export function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {}
}

export function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}

/** A text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}

/** The error in `{ error: { message, code, type } }`, which OpenAI and Anthropic agree on; some send a bare text. */
export function errorIn(body: unknown): ProviderError | undefined {
  const { error } = objectOf(body)
  if (error === undefined || error === null) return undefined
  if (typeof error === 'string') return { message: error, code: undefined }
  const { message, code, type } = objectOf(error)
  return { message: textOf(message) ?? 'the provider gave no message', code: textOf(code) ?? textOf(type) }
}
