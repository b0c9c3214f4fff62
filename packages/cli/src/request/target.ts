import { readFileSync } from 'node:fs'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { UsageError } from '../command.ts'

/** The request that is to be sent, but for its deadline. */
export interface Target {
  readonly url: URL
  readonly method: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  /** Whether any certificate will do. */
  readonly insecure: boolean
}

/** The flags that say what to send. */
export const targetFlags = {
  method: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  data: { type: 'string', short: 'd' },
  insecure: { type: 'boolean', short: 'k' },
} as const

export const targetHelp = `  -X, --method <word>    GET, or POST where there is data
  -H, --header <line>    'Name: value', as often as needed; wins over our own
  -d, --data <text>      the body; @file reads a file, @- standard input
  -k, --insecure         take any certificate
`

interface RawTarget {
  readonly method?: string | undefined
  readonly header?: readonly string[] | undefined
  readonly data?: string | undefined
  readonly insecure?: boolean | undefined
}

/**
 * The request that the flags describe.
 * @throws UsageError that names the flag.
 */
export function readTarget(positionals: readonly string[], flags: RawTarget): Target {
  const body = readData(flags.data)
  const contentType = body === undefined ? {} : { 'content-type': typeOf(body) }
  return {
    url: readUrl(positionals),
    method: readMethod(flags.method ?? (body === undefined ? 'GET' : 'POST')),
    headers: {
      accept: '*/*',
      'user-agent': 'timebudget',
      ...contentType,
      ...readHeaders(flags.header ?? []),
    },
    body,
    insecure: flags.insecure ?? false,
  }
}

function readUrl([text, second]: readonly string[]): URL {
  if (text === undefined) throw new UsageError('URL: missing')
  if (second !== undefined) throw new UsageError(`URL: there can be only one, got '${second}' as well`)
  const full = text.includes('://') ? text : `http://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new UsageError(`URL: expected one of http or https, got '${text}'`)
}

function readMethod(text: string): string {
  if (/^[A-Za-z]{1,20}$/.test(text)) return text.toUpperCase()
  throw new UsageError(`--method: expected a word such as POST, got '${text}'`)
}

function readHeaders(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      throw new UsageError(`--header: expected 'Name: value', got '${line}'`)
    }
    headers[name] = value
  }
  return headers
}

function readData(text: string | undefined): Buffer | undefined {
  if (text === undefined || !text.startsWith('@')) return text === undefined ? undefined : Buffer.from(text)
  try {
    return readFileSync(text === '@-' ? 0 : text.slice(1))
  } catch {
    throw new UsageError(`--data: cannot read ${text.slice(1)}`)
  }
}

function typeOf(body: Buffer): string {
  try {
    JSON.parse(body.toString('utf8'))
    return 'application/json'
  } catch {
    return 'text/plain; charset=utf-8'
  }
}

/** The URL as it may be shown: without a password, in one line. */
export function shownUrl({ origin, pathname, search }: URL): string {
  return origin + pathname + search
}
