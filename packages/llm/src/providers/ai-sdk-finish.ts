import { objectOf, textOf } from '../protocols/json.ts'

/** How the AI SDK finishes by itself where the connection has ended and the provider has not, in its versions 7, 6 and 5. */
const madeUp: ReadonlySet<string | undefined> = new Set(['interrupted', 'other', 'unknown'])

export function isFinish(part: unknown): boolean {
  return objectOf(part)['type'] === 'finish'
}

/** Whether a part says that the answer is finished, and nobody but the SDK says so. */
export function isMadeUpFinish(part: unknown): boolean {
  const { unified, raw } = finishOf(part)
  return isFinish(part) && raw === undefined && madeUp.has(unified)
}

/** The SDK's word for the reason and, since version 6, the provider's own. */
export function finishOf(part: unknown): {
  readonly unified: string | undefined
  readonly raw: string | undefined
} {
  const reason = objectOf(part)['finishReason']
  const { unified, raw } = objectOf(reason)
  return { unified: textOf(reason) ?? textOf(unified), raw: textOf(raw) }
}
