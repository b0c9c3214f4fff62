import { governedFetch, type GovernedFetchOptions, type LlmCall, type Profile } from '@timebudget/llm'

/** What no test reaches, on however busy a machine. */
export const ample: Profile = { connect: 10_000, firstToken: 10_000, idle: 10_000, total: 60_000 }

/** A fetch whose records can be waited for. */
export interface Governed {
  readonly fetch: ReturnType<typeof governedFetch>
  readonly calls: readonly LlmCall[]
  /** The record of the next call to end, or the oldest that nobody has asked for yet. */
  nextCall(): Promise<LlmCall>
}

export function governed(
  profile: Partial<Profile> = {},
  options: Omit<GovernedFetchOptions, 'profile' | 'onCall'> = {},
): Governed {
  const calls: LlmCall[] = []
  const waiting: Array<(call: LlmCall) => void> = []
  let taken = 0
  const fetch = governedFetch({
    ...options,
    profile: { ...ample, ...profile },
    onCall(call) {
      calls.push(call)
      const waiter = waiting.shift()
      if (waiter === undefined) return
      taken += 1
      waiter(call)
    },
  })
  return {
    fetch,
    calls,
    nextCall() {
      const call = calls[taken]
      if (call === undefined) return new Promise((resolve) => waiting.push(resolve))
      taken += 1
      return Promise.resolve(call)
    },
  }
}

/** A call to a provider's chat completions. */
export function chat(body: object = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'test-model',
      stream: true,
      messages: [{ role: 'user', content: 'Say something.' }],
      ...body,
    }),
  }
}

/** What a promise fails with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no failure',
    (error: unknown) => error,
  )
}

/** A response whose body is these pieces. */
export function responseOf(type: string, pieces: Iterable<string>, status = 200): Response {
  const encoder = new TextEncoder()
  const iterator = pieces[Symbol.iterator]()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
  return new Response(body, { status, headers: { 'content-type': type } })
}
