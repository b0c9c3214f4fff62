// What grpc-js keeps to itself and offers no way to: its own timer, and how a stream ended. Where a later version keeps
// it elsewhere, its timer answers beside ours, and every call that is broken off counts as its client's doing.

interface BaseCall {
  readonly nextCall?: BaseCall
  deadlineTimer?: NodeJS.Timeout | null
  readonly stream?: { readonly closed?: boolean; readonly rstCode?: number }
}

function baseOf(call: object): BaseCall {
  let base: BaseCall = call
  while (base.nextCall !== undefined) base = base.nextCall
  return base
}

/**
 * Ends grpc-js's own timer of a call: it is set in 32 bits, so that a deadline of 30 days fails at once, and it answers
 * without saying how the call ended.
 */
export function takeOverTimer(call: object): void {
  const base = baseOf(call)
  if (base.deadlineTimer === undefined || base.deadlineTimer === null) return
  clearTimeout(base.deadlineTimer)
  base.deadlineTimer = null
}

/** How a call that grpc-js gives up has ended: with an answer of its own, or how the client left. */
export function endOf(call: object): string {
  const { stream } = baseOf(call)
  // an answer of its own is still on its way when we hear of it
  return stream?.closed === false ? 'answered' : `h2_rst_${stream?.rstCode ?? 0}`
}
