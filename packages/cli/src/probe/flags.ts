import { type CodecName, codecs, defaultEmit } from '@timebudget/core/wire'
import { UsageError } from '../command.ts'
import { parseFlags, readTime, readWhole } from '../flags.ts'
import { wrapped } from '../terminal/wrapped.ts'
import { readTarget, type Target, targetFlags, targetHelp } from '../request/target.ts'

/** What is asked of `timebudget probe`; milliseconds. */
export interface ProbeFlags {
  readonly target: Target
  readonly budget: number
  /** How long an answer is waited for after the deadline. */
  readonly grace: number
  readonly emit: readonly CodecName[]
  readonly count: number
  readonly concurrency: number
  readonly json: boolean
  readonly ascii: boolean
}

export const probeHelp: string = `Usage: timebudget probe [options] URL

Sends a request with a deadline, and draws where the time went, as the services
tell it in Server-Timing.

  timebudget probe --budget 3s http://localhost:3000/chat
  timebudget probe -b 800ms -d '{"q":"deadlines"}' -n 200 localhost:3000/search

  -b, --budget <time>    what it may take, connecting included (default 5s)
      --grace <time>     how long to wait on after the deadline (default 1s)
  -n, --count <number>   send so many, and give percentiles (default 1)
  -c, --concurrency <n>  so many at a time (default 10)
${targetHelp}      --emit <list>      headers that carry the deadline, with commas between
                         (default ${defaultEmit.join(',')})
      --json             print JSON in place of the picture
      --ascii            draw with ASCII alone
  -h, --help

Also for --emit:
${wrapped(otherCodecs().join(', '), { columns: 80, indent: '  ' })}

Exit codes: 0 answered in time, 3 deadline_exceeded, 4 short_circuited,
5 another outcome told by the service (shed, operation_timeout, ...), 6 another
status than 2xx, 7 no connection or an answer that broke off, 130 stopped by
Ctrl-C, 2 not understood, 1 failed. Of many: 0 if all were answered in time, else
that of the commonest fault.
`

function otherCodecs(): string[] {
  return Object.keys(codecs).filter((name) => !defaultEmit.some((emitted) => emitted === name))
}

/**
 * Reads the arguments of `timebudget probe`; `undefined` where its help is asked for.
 * @throws UsageError that names the flag.
 */
export function readProbeFlags(args: readonly string[]): ProbeFlags | undefined {
  const { values, positionals } = parseFlags(args, {
    ...targetFlags,
    budget: { type: 'string', short: 'b' },
    grace: { type: 'string' },
    emit: { type: 'string' },
    count: { type: 'string', short: 'n' },
    concurrency: { type: 'string', short: 'c' },
    json: { type: 'boolean' },
    ascii: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  })
  if (values.help === true) return undefined
  return {
    budget: readTime(values.budget ?? '5s', '--budget'),
    grace: readTime(values.grace ?? '1s', '--grace'),
    emit: values.emit === undefined ? defaultEmit : values.emit.split(',').map(readCodec),
    count: readWhole(values.count ?? '1', { flag: '--count', least: 1, most: 100_000 }),
    concurrency: readWhole(values.concurrency ?? '10', { flag: '--concurrency', least: 1, most: 1000 }),
    json: values.json ?? false,
    ascii: values.ascii ?? false,
    target: readTarget(positionals, values),
  }
}

function readCodec(text: string): CodecName {
  const name = text.trim().toLowerCase()
  if (isCodec(name)) return name
  throw new UsageError(`--emit: there is no '${text}'; there are ${Object.keys(codecs).join(', ')}`)
}

function isCodec(name: string): name is CodecName {
  return Object.hasOwn(codecs, name)
}
