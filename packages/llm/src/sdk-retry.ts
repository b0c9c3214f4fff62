import type { ModelCall } from './model-call.ts'

/** OpenAI's and Anthropic's SDKs, and what is built of them, number their own attempts from 0. */
const countHeader = 'x-stainless-retry-count'

const advice = 'an SDK retries by itself: give it maxRetries: 0, and retry above it, within the deadline'

/** Refuses what SDKs repeat by themselves; warns of it once. */
export class SdkRetryGuard {
  #hasWarned = false

  isRetry(headers: Headers): boolean {
    return Number(headers.get(countHeader)) > 0
  }

  /** Ends the call without any I/O, with an answer that such SDKs do not retry. */
  refuse(call: ModelCall): Response {
    if (!this.#hasWarned) process.emitWarning(advice, 'TimeBudgetWarning')
    this.#hasWarned = true
    const error = new Error(`${call.operation} was refused: ${advice}`)
    call.refused(error, { byCaller: false })
    return Response.json(
      {
        type: 'error',
        error: { type: 'sdk_retry_refused', code: 'sdk_retry_refused', message: error.message },
      },
      { status: 503, headers: { 'x-should-retry': 'false' } },
    )
  }
}
