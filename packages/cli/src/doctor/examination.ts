import type { Exchange } from '../request/exchange.ts'
import { send } from '../request/send.ts'
import type { Target } from '../request/target.ts'
import type { Leaf } from './leaf.ts'

/** Headers of a deadline as they are put on the wire; a list is sent as so many headers. */
export type Stamps = Readonly<Record<string, string | readonly string[]>>

/** What the checks share: the service as it is without a deadline, and a way of asking it again. */
export interface Examination {
  /** The answer to a request without a deadline. */
  readonly plain: Exchange
  /** How long that takes, ms; the shortest of the tries. */
  readonly usual: number
  /** Our stand-in for what the service calls, where it was pointed at it. */
  readonly leaf: Leaf | undefined
  /** Milliseconds; how long any answer is waited for. */
  readonly patience: number
  /** Sends the request with these headers; a function is asked for them when the connection stands. */
  ask(
    stamps: Stamps | (() => Stamps),
    how?: { readonly patience?: number; readonly stop?: AbortSignal },
  ): Promise<Exchange>
}

/** The pair of headers for so many milliseconds from now. */
export function pairFor(milliseconds: number): Stamps {
  const left = Math.ceil(milliseconds)
  return { 'x-request-deadline': String(Date.now() + left), 'x-request-timeout-ms': String(left) }
}

const tries = 3

/** Asks the service a few times without a deadline; stops at the first try that has no answer, or that takes long. */
export async function examine(
  target: Target,
  {
    patience,
    leaf,
    stop,
  }: { readonly patience: number; readonly leaf: Leaf | undefined; readonly stop: AbortSignal },
): Promise<Examination> {
  const ask: Examination['ask'] = (stamps, how = {}) =>
    send(target, {
      stamps: typeof stamps === 'function' ? stamps : () => stamps,
      patience: how.patience ?? patience,
      stop: how.stop ?? stop,
    })
  let plain = await ask({})
  let usual = timeOf(plain)
  for (let attempt = 1; attempt < tries && plain.ending === 'complete' && usual < 1000; attempt += 1) {
    plain = await ask({})
    usual = Math.min(usual, timeOf(plain))
  }
  return { plain, usual, leaf, patience, ask }
}

/** From the sent request to the end, ms. */
export function timeOf({ sentAt, total }: Exchange): number {
  return total - (sentAt ?? 0)
}

/** Whether two answers are of one kind. */
export function isLike(one: Exchange, other: Exchange): boolean {
  return one.ending === other.ending && one.status === other.status
}

/** `504 deadline_exceeded`, `200`, `no answer`. */
export function answerText({ ending, status, headers }: Exchange): string {
  if (status === undefined) return ending === 'gave_up' ? 'no answer in time' : 'no answer'
  const told = headers['x-deadline-outcome']
  const word = typeof told === 'string' && /^[a-z_]{1,40}$/.test(told) ? ` ${told}` : ''
  return `${status}${word}${ending === 'cut_off' ? ', broken off' : ''}`
}

/** Whether the service says that there was too little time. */
export function isForLackOfTime({ status, headers }: Exchange): boolean {
  const told = headers['x-deadline-outcome']
  return status !== undefined && (told === 'deadline_exceeded' || told === 'short_circuited')
}
