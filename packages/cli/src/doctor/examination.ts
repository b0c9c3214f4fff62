import type { IncomingHttpHeaders } from 'node:http'
import { decodeDeadline, defaultAccept } from '@timebudget/core/wire'
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
  /** Whether it showed, when nobody gave it a deadline, that it has one of its own. */
  readonly hasItsOwn: boolean
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
  let tellsLeaf = false
  void leaf?.next().then(({ headers }) => (tellsLeaf = carriesDeadline(headers)))
  let plain = await ask({})
  leaf?.release()
  let usual = timeOf(plain)
  for (let attempt = 1; attempt < tries && plain.ending === 'complete' && usual < 1000; attempt += 1) {
    plain = await ask({})
    usual = Math.min(usual, timeOf(plain))
  }
  const hasItsOwn = tellsLeaf || isForLackOfTime(plain) || tellsOfOperations(plain)
  return { plain, usual, hasItsOwn, leaf, patience, ask }
}

function carriesDeadline(headers: IncomingHttpHeaders): boolean {
  return decodeDeadline(headers, defaultAccept, Date.now()).deadline !== undefined
}

/** Whether its Server-Timing says when operations began, as no stranger's does. */
function tellsOfOperations({ headers }: Exchange): boolean {
  return /;start=\d/.test(String(headers['server-timing'] ?? ''))
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

/** Less than this, and whether an answer came at once or took its usual time cannot be told. */
const shortestToTellApart = 100

/** Whether a refusal tells anything: not where everything is refused as fast. */
export function canTellRefusals({ plain, usual }: Pick<Examination, 'plain' | 'usual'>): boolean {
  return !isForLackOfTime(plain) || usual >= shortestToTellApart
}

/** Whether it was refused for lack of time because of what was sent: in less time than without a deadline where that ends so too. */
export function isRefused(answer: Exchange, { plain, usual }: Pick<Examination, 'plain' | 'usual'>): boolean {
  return isForLackOfTime(answer) && (!isForLackOfTime(plain) || timeOf(answer) <= usual / 2)
}
