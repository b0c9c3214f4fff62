import { UsageError } from '../command.ts'
import { parseFlags, readTime, readWhole } from '../flags.ts'
import { readTarget, type Target, targetFlags, targetHelp } from '../request/target.ts'
import type { LeafAddress } from './leaf.ts'

/** What is asked of `timebudget doctor`. */
export interface DoctorFlags {
  readonly target: Target
  /** Milliseconds. */
  readonly patience: number
  readonly leaf: LeafAddress | undefined
  readonly upstream: URL | undefined
  readonly json: boolean
  readonly ascii: boolean
}

export const doctorHelp: string = `Usage: timebudget doctor [options] URL

Asks a service up to 20 times, and says what it does with deadlines, and what to
change. Give a URL that may be asked so often and that does real work: it should
take 40 ms or more, or call a leaf.

  timebudget doctor http://localhost:3000/search
  timebudget doctor --leaf 4100 http://localhost:3000/search

      --leaf <port>      stand in, at this port or host:port, for something that
                         the service calls: shows whether deadlines are passed
                         on, and whether work stops when its caller leaves
      --upstream <url>   what the leaf passes calls on to; else it answers {}
      --patience <time>  how long to wait for any answer (default 10s)
${targetHelp}      --json             print JSON in place of the report
      --ascii            write with ASCII alone
  -h, --help

Exit codes: 0 all that could be checked holds, 1 something does not, 7 no answer
to begin with, 130 stopped by Ctrl-C, 2 not understood.
`

/**
 * Reads the arguments of `timebudget doctor`; `undefined` where its help is asked for.
 * @throws UsageError that names the flag.
 */
export function readDoctorFlags(args: readonly string[]): DoctorFlags | undefined {
  const { values, positionals } = parseFlags(args, {
    ...targetFlags,
    leaf: { type: 'string' },
    upstream: { type: 'string' },
    patience: { type: 'string' },
    json: { type: 'boolean' },
    ascii: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  })
  if (values.help === true) return undefined
  if (values.upstream !== undefined && values.leaf === undefined)
    throw new UsageError('--upstream: is for a --leaf, which is missing')
  return {
    patience: readTime(values.patience ?? '10s', '--patience'),
    leaf: values.leaf === undefined ? undefined : readLeaf(values.leaf),
    upstream: values.upstream === undefined ? undefined : readUpstream(values.upstream),
    json: values.json ?? false,
    ascii: values.ascii ?? false,
    target: readTarget(positionals, values),
  }
}

function readLeaf(text: string): LeafAddress {
  const colon = text.lastIndexOf(':')
  const host = colon < 0 ? '127.0.0.1' : text.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host, port: readWhole(text.slice(colon + 1), { flag: '--leaf', least: 1, most: 65_535 }) }
}

function readUpstream(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new UsageError(`--upstream: expected a URL of http or https, got '${text}'`)
}
