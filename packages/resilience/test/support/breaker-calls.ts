import type { Breaker } from '../../src/index.ts'

export function ok(): string {
  return 'ok'
}

export function fail(): never {
  throw new Error('down')
}

/** Lets so many calls through the breaker fail, one after the other. */
export async function failTimes(breaker: Breaker, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    await breaker.run(fail).catch((error: unknown) => {
      if (!(error instanceof Error) || error.message !== 'down') throw error
    })
  }
}

/** A promise that the test settles by hand. */
export interface Deferred {
  readonly promise: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

export function deferred(): Deferred {
  let resolve: () => void = () => undefined
  let reject: (error: unknown) => void = () => undefined
  const promise = new Promise<void>((onValue, onError) => {
    resolve = onValue
    reject = onError
  })
  return { promise, resolve, reject }
}
