import type { RequestOptions } from 'node:https'

/** The call an `http.request` was asked for. */
export interface NodeCall {
  readonly url: URL
  readonly method: string
}

/** The arguments of an `http.request`, looked through. */
export interface ReadNodeCall extends NodeCall {
  readonly protocol: string
  readonly options: Readonly<RequestOptions>
  /** Where among the arguments the options stand, or would stand. */
  readonly optionsAt: number
  /** Whether the first argument is the URL as a string: Node would parse it once more. */
  readonly isUrlText: boolean
}

/** Reads the arguments as Node does; `undefined` if Node is going to throw at the URL. */
export function readNodeCall(args: readonly unknown[], defaultProtocol: string): ReadNodeCall | undefined {
  const [first, second] = args
  const isGiven = typeof first === 'string' || first instanceof URL
  const options = optionsOf(isGiven ? second : first)
  if (isGiven) {
    const base = typeof first === 'string' ? parsed(first) : first.href
    if (base === undefined) return undefined
    const protocol = typeof base === 'string' ? (first as URL).protocol : base.protocol
    return new ReadCall({ base, protocol, options, optionsAt: 1, isUrlText: isUrlText(first, options) })
  }
  const protocol = text(options.protocol) ?? protocolOf(options.agent) ?? defaultProtocol
  const base = `${protocol}//localhost`
  if (protocol !== 'http:' && protocol !== 'https:' && parsed(base) === undefined) return undefined
  return new ReadCall({ base, protocol, options, optionsAt: 0, isUrlText: false })
}

/** Puts the URL together only for who asks: the setters of one cost more than all else that is done for a call. */
class ReadCall implements ReadNodeCall {
  readonly protocol: string
  readonly options: Readonly<RequestOptions>
  readonly optionsAt: number
  readonly isUrlText: boolean
  readonly #base: string | URL
  #url: URL | undefined

  constructor(read: Omit<ReadNodeCall, 'url' | 'method'> & { readonly base: string | URL }) {
    this.protocol = read.protocol
    this.options = read.options
    this.optionsAt = read.optionsAt
    this.isUrlText = read.isUrlText
    this.#base = read.base
  }

  get url(): URL {
    this.#url ??= urlOf(this.#base, this.options)
    return this.#url
  }

  get method(): string {
    const { method } = this.options
    return typeof method === 'string' ? method.toUpperCase() : 'GET'
  }
}

function optionsOf(value: unknown): RequestOptions {
  return typeof value === 'object' && value !== null ? value : {}
}

function isUrlText(first: unknown, { hostname, host, port, path }: RequestOptions): boolean {
  return typeof first === 'string' && (hostname ?? host ?? port ?? path ?? undefined) === undefined
}

/** What is given as options counts for more than the URL. A URL's setters pass over what they cannot read. */
function urlOf(base: string | URL, options: RequestOptions): URL {
  const url = typeof base === 'string' ? new URL(base) : base
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
