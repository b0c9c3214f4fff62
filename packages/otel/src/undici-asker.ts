/** undici's functions that make a request while whoever asked for it waits on the stack. */
const askers: ReadonlySet<string | null> = new Set([
  'httpNetworkFetch',
  'request',
  'stream',
  'pipeline',
  'upgrade',
])

/** An asker stands no deeper, below a few interceptors. */
const framesLookedAt = 40

/**
 * Whether the request that undici is making is asked for at this moment. A bounded pool makes those that waited in its queue
 * while another one ends, and interceptors repeat requests while they read a socket or in a timer: in the async context of
 * somebody else's request, so under somebody else's deadline. Only the stack tells.
 */
export function isAskedForNow(): boolean {
  for (const frame of callStack()) {
    const name = frame.getFunctionName()
    if (askers.has(name)) return true
    // from here on it is the request that ends which stands on the stack
    if (name === '[onDrain]' || name === 'onDrain') return false
  }
  return false
}

/** The frames themselves: as text each would be looked up in a source map. */
function callStack(): readonly NodeJS.CallSite[] {
  const { prepareStackTrace, stackTraceLimit } = Error
  const holder: { readonly stack?: unknown } = {}
  try {
    Error.stackTraceLimit = framesLookedAt
    Error.prepareStackTrace = (_error, frames) => frames
    Error.captureStackTrace(holder, callStack)
    return holder.stack as readonly NodeJS.CallSite[]
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Error.prepareStackTrace = prepareStackTrace
  }
}
