/** A request that has been made and whose headers have not left yet, whichever library makes it. */
export interface OutgoingCall {
  /** Where it goes; `undefined` if nobody can tell. */
  readonly url: URL | undefined
  /** Whether its deadline can be told: it was made in the async context of whoever asked for it. */
  readonly isInCallersContext: boolean
  /** A header's value by its name in lower case; of a list all. */
  header(name: string): string | undefined
  /** A list is read as the headers leave. */
  setHeader(name: string, value: string | readonly string[]): void
  /** Whether a header still is this very list. */
  holds(name: string, value: readonly string[]): boolean
}

/** Is told of each call. */
export type CallObserver = (call: OutgoingCall) => void

/** Where a request goes whose connection leads to `origin`; `undefined` if nobody can tell. */
export function destinationOf(origin: string, path: string): URL | undefined {
  // a proxy is asked for the whole URL: that is where the request goes in the end
  if (/^https?:/i.test(path)) return parsed(path)
  // put together, not resolved: a path such as `//host` is a path
  return parsed(path.startsWith('/') ? `${origin}${path}` : origin)
}

function parsed(url: string): URL | undefined {
  try {
    return new URL(url)
  } catch {
    return undefined
  }
}
