import type { RequestOptions } from 'node:https'

/** The call an `http.request` was asked for. */
export interface NodeCall {
  readonly url: URL
  readonly method: string
}

/** The arguments of an `http.request`, looked through. */
export interface ReadNodeCall extends NodeCall {
  readonly options: Readonly<RequestOptions>
  /** Where among the arguments the options stand, or would stand. */
  readonly optionsAt: number
  /** Whether the first argument is the URL as a string: Node would parse it once more. */
  readonly isUrlText: boolean
}

/** Reads the arguments as Node does; `undefined` if Node is going to throw at the URL. */
export function readNodeCall(args: readonly unknown[], defaultProtocol: string): ReadNodeCall | undefined {
  const [first, second] = args
  const given = typeof first === 'string' || first instanceof URL
  const options: RequestOptions = (
    isOptions(given ? second : first) ? (given ? second : first) : {}
  ) as RequestOptions
  const url = urlOf(given ? String(first) : undefined, options, defaultProtocol)
  if (url === undefined) return undefined
  const method = typeof options.method === 'string' ? options.method.toUpperCase() : 'GET'
  return { url, method, options, optionsAt: given ? 1 : 0, isUrlText: isUrlText(first, options) }
}

function isUrlText(first: unknown, { hostname, host, port, path }: RequestOptions): boolean {
  return typeof first === 'string' && (hostname ?? host ?? port ?? path ?? undefined) === undefined
}

function isOptions(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** What is given as options counts for more than the URL. A URL's setters pass over what they cannot read. */
function urlOf(given: string | undefined, options: RequestOptions, defaultProtocol: string): URL | undefined {
  const protocol = text(options.protocol) ?? protocolOf(options.agent) ?? defaultProtocol
  const url = parsed(given ?? `${protocol}//localhost`)
  if (url === undefined) return undefined
  const host = text(options.hostname) ?? text(options.host)
  if (host !== undefined) setHostname(url, host)
  if (options.port !== undefined && options.port !== null) url.port = String(options.port)
  if (typeof options.path === 'string') setPath(url, options.path)
  return url
}

/** What can be no host is nobody's: not localhost, which is trusted. */
function setHostname(url: URL, host: string): void {
  url.hostname = 'unreadable.invalid'
  url.hostname = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

function setPath(url: URL, path: string): void {
  // a proxy is asked for the whole URL: that is where the call goes
  if (/^https?:\/\//i.test(path) && URL.canParse(path)) {
    url.href = path
    return
  }
  const query = path.indexOf('?')
  url.pathname = query < 0 ? path : path.slice(0, query)
  url.search = query < 0 ? '' : path.slice(query)
}

function protocolOf(agent: RequestOptions['agent']): string | undefined {
  return typeof agent === 'object' && 'protocol' in agent ? text(agent.protocol) : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Where all but few can be parsed, asking before costs as much as parsing. */
function parsed(url: string): URL | undefined {
  try {
    return new URL(url)
  } catch {
    return undefined
  }
}
