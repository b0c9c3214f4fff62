import { UsageError } from '../command.ts'
import { parseFlags, readTime } from '../flags.ts'
import type { SimulationOptions } from './simulate.ts'
import { capacity } from './workload.ts'

/** What the command line asked for. */
export interface SimulateFlags {
  readonly help: boolean
  readonly json: boolean
  /** The file for the chart. */
  readonly svg: string | undefined
  readonly options: SimulationOptions
}

export const simulateHelp = `Usage: timebudget simulate [options]

Puts the same requests through one chain (gateway, retrieve, rerank, a model with 32 slots) under six
ways of dealing with time, and compares what comes of it. Virtual time: minutes pass in seconds.

  --load <list>      times the model's capacity (default 0.5,1,2,3)
  --budget <time>    what each user waits at most (default 12s)
  --duration <time>  how long requests arrive, after a warm-up of a minute (default 5m)
  --noise <number>   how far estimates of the work are off, 0.35 for 35 % (default 0.35)
  --seed <number>    the same seed gives the same output, to the last byte (default 1)
  --svg <file>       also write a chart
  --json             print JSON in place of the table
  --help
`

const warmup = 60_000
// so many take a minute of CPU on Node 20, and 0.9 GB: without timeouts most of them wait in line at the end
const mostRequests = 100_000

/**
 * Reads the arguments of `timebudget simulate`.
 * @throws UsageError that names the flag.
 */
export function readSimulateFlags(args: readonly string[]): SimulateFlags {
  const { values, positionals } = parseFlags(args, {
    load: { type: 'string' },
    budget: { type: 'string' },
    duration: { type: 'string' },
    noise: { type: 'string' },
    seed: { type: 'string' },
    svg: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  })
  if (positionals.length > 0) throw new UsageError(`${positionals[0]}: simulate takes flags only`)
  const options = {
    loads: readLoads(values.load ?? '0.5,1,2,3'),
    budget: readTime(values.budget ?? '12s', '--budget'),
    warmup,
    duration: readTime(values.duration ?? '5m', '--duration'),
    noise: readNumber(values.noise ?? '0.35', { flag: '--noise', least: 0, most: 10 }),
    seed: readSeed(values.seed ?? '1'),
  }
  const requests = Math.max(...options.loads) * capacity * ((warmup + options.duration) / 1000)
  if (requests > mostRequests) {
    throw new UsageError(
      `--duration, --load: that is ${Math.round(requests)} requests; ${mostRequests} are the most`,
    )
  }
  return { help: values.help ?? false, json: values.json ?? false, svg: values.svg, options }
}

function readLoads(text: string): readonly number[] {
  return text.split(',').map((part) => readNumber(part, { flag: '--load', least: 0.01, most: 100 }))
}

function readSeed(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new UsageError(`--seed: expected a whole number of at most nine digits, got '${text}'`)
}

function readNumber(
  text: string,
  { flag, least, most }: { readonly flag: string; readonly least: number; readonly most: number },
): number {
  const number = text.trim() === '' ? Number.NaN : Number(text)
  if (number >= least && number <= most) return number
  throw new UsageError(`${flag}: expected a number from ${least} to ${most}, got '${text}'`)
}
