import { Deadline } from '@timebudget/core'
import { encodeDeadline, parseServerTiming, type TimingReport } from '@timebudget/core/wire'
import type { Exchange } from '../request/exchange.ts'
import { send } from '../request/send.ts'
import { judge, type Verdict } from '../request/verdict.ts'
import type { ProbeFlags } from './flags.ts'

/** One request under a budget, and what it came to. */
export interface Probe extends Verdict {
  /** Milliseconds. */
  readonly budget: number
  readonly exchange: Exchange
  /** What the service told of its work, in the order of its start. */
  readonly operations: readonly TimingReport[]
}

/** Sends one request with a deadline. Never rejects. */
export async function probe(
  { target, budget, grace, emit }: Pick<ProbeFlags, 'target' | 'budget' | 'grace' | 'emit'>,
  stop: AbortSignal,
): Promise<Probe> {
  const deadline = Deadline.after(budget)
  const exchange = await send(target, {
    stamps: () => (deadline.expired ? undefined : encodeDeadline(deadline, emit)),
    patience: budget + grace,
    stop,
  })
  deadline.settle()
  return { ...judge(exchange, budget), budget, exchange, operations: operationsOf(exchange) }
}

function operationsOf({ headers }: Exchange): readonly TimingReport[] {
  const given: string | readonly string[] | undefined = headers['server-timing']
  return given === undefined ? [] : parseServerTiming(String(given))
}
