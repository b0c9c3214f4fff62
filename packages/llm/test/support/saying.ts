import type { ModelEvent } from '@timebudget/llm'

export const never = (): Promise<never> => new Promise(() => undefined)

/** A model that says these pieces, and fails where one is an error. */
export async function* says(...pieces: (string | Error)[]): AsyncGenerator<ModelEvent> {
  for (const piece of pieces) {
    if (piece instanceof Error) throw piece
    yield { type: 'text', text: piece }
  }
}

/** A model that says these pieces and then nothing, for ever. */
export async function* hangs(...pieces: string[]): AsyncGenerator<ModelEvent> {
  yield* says(...pieces)
  await never()
}

/** Lets everything that waits for nothing but other promises come to rest. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) await Promise.resolve()
}
