import {
  currentDeadline,
  type Deadline,
  deadlineBehind,
  deadlineSent,
  type Duration,
  type Floor,
  isOutcome,
  type Outcome,
  refuseUnknownOptions,
  type RunningOperation,
  startOperation,
} from '@timebudget/core'
import {
  attemptHeader,
  type CodecName,
  codecs,
  defaultEmit,
  encodeAttempt,
  encodeDeadline,
  type HostRule,
  type HostTest,
  hostTest,
  isPrivateHost,
  parseServerTiming,
} from '@timebudget/core/wire'

/** What every client takes; `Call` is the client's own idea of a request. */
export interface ClientOptions<Call> {
  /** Own limit of a call, never more than what is left; none by default. */
  readonly timeout?: Duration | undefined
  /** A call is not begun with less than this left; 0. */
  readonly floor?: Floor | undefined
  /** The operation's name in the ledger, or a function of the call; `'fetch'` and so on. */
  readonly operation?: string | ((call: Call) => string) | undefined
  /** A call that stands under no deadline, and has no `timeout`, fails with a TypeError in place of running unbounded; `false`. */
  readonly requireDeadline?: boolean | undefined
  /** Which hosts get the deadline in headers; all. */
  readonly propagateTo?: HostRule | undefined
  /** Whose Server-Timing is read into the ledger; private addresses and loopback. */
  readonly trust?: HostRule | undefined
  /** Codecs written; `x-request-deadline` and `x-request-timeout-ms`. */
  readonly emit?: readonly CodecName[] | undefined
}

/** `ClientOptions` with every default filled in. */
export interface ResolvedClientOptions<Call> {
  readonly timeout: Duration | undefined
  readonly floor: Floor | undefined
  readonly nameOf: (call: Call) => string
  readonly requireDeadline: boolean
  readonly propagatesTo: HostTest
  readonly trusts: HostTest
  readonly emit: readonly CodecName[]
  /** Lower-case names of the headers that we may write. */
  readonly headerNames: readonly string[]
}

const optionNames = [
  'timeout',
  'floor',
  'operation',
  'requireDeadline',
  'propagateTo',
  'trust',
  'emit',
] as const satisfies (keyof ClientOptions<never>)[]

/** @throws TypeError that names the option which does not exist or cannot be read. */
export function resolveClientOptions<Call>(
  options: ClientOptions<Call>,
  defaultName: string,
): ResolvedClientOptions<Call> {
  refuseUnknownOptions(options, optionNames)
  const { operation = defaultName, emit = defaultEmit, timeout, floor } = options
  const propagateTo = options.propagateTo ?? true
  for (const name of emit) {
    if (!Object.hasOwn(codecs, name)) {
      throw new TypeError(
        `emit: no codec is called '${String(name)}'; there are ${Object.keys(codecs).join(', ')}`,
      )
    }
  }
  return Object.freeze({
    timeout,
    floor,
    nameOf: typeof operation === 'function' ? operation : () => operation,
    requireDeadline: options.requireDeadline === true,
    propagatesTo: propagateTo === true ? everyHost : hostTest(propagateTo, 'propagateTo'),
    trusts: hostTest(options.trust ?? isPrivateHost, 'trust'),
    emit: [...emit],
    headerNames: [attemptHeader, ...emit.map((name) => codecs[name].header)],
  })
}

/** What a call stands under: the ambient deadline or that behind the signal it was given, whichever ends first. */
export function deadlineOfCall(signal: AbortSignal | undefined): Deadline | undefined {
  const ambient = currentDeadline()
  const given = signal === undefined ? undefined : deadlineBehind(signal)
  if (ambient === undefined || given === undefined) return ambient ?? given
  return given.remaining() < ambient.remaining() ? given : ambient
}

/** What a call is limited by, besides what its client is. */
export interface CallBounds {
  readonly deadline?: Deadline | undefined
  /** The call's own limit, where it has one; never more than the client's. */
  readonly timeout?: Duration | undefined
  readonly signal?: AbortSignal | undefined
}

/** Whether a call has anything to keep to, or must have: all others are the library's alone. */
export function isBounded(
  { deadline, timeout }: CallBounds,
  resolved: Pick<ResolvedClientOptions<never>, 'timeout' | 'requireDeadline'>,
): boolean {
  return (
    deadline !== undefined ||
    timeout !== undefined ||
    resolved.timeout !== undefined ||
    resolved.requireDeadline
  )
}

/** @throws TypeError if nothing limits the call, where something must. */
export function assertLimited(
  { deadline, timeout }: CallBounds,
  resolved: Pick<ResolvedClientOptions<never>, 'timeout' | 'requireDeadline'>,
): void {
  if (!resolved.requireDeadline || deadline !== undefined) return
  if (timeout === undefined && resolved.timeout === undefined)
    throw new TypeError('requireDeadline: this call stands under no deadline')
}

/**
 * Begins the operation of a call.
 * @throws BudgetTooSmallError, the deadline's reason, or a TypeError if it stands under no deadline and must.
 */
export function startCall<Call>(
  resolved: Pick<ResolvedClientOptions<Call>, 'nameOf' | 'timeout' | 'floor' | 'requireDeadline'>,
  call: Call,
  bounds: CallBounds,
): RunningOperation {
  assertLimited(bounds, resolved)
  const { deadline, signal, timeout = resolved.timeout } = bounds
  return startOperation(resolved.nameOf(call), { deadline, signal, timeout, floor: resolved.floor })
}

type Emitting = Pick<ResolvedClientOptions<never>, 'propagatesTo' | 'emit'>

/** Where a call goes: its URL is read only by those who ask, since to parse one costs as much as to write the headers. */
export interface Destination {
  readonly url: URL
}

/** The headers for one attempt to one host, computed now; empty for hosts that get none. Whoever listens is told. */
export function headersFor(url: URL, deadline: Deadline, options: Emitting): Record<string, string> {
  tellOfSending({ url }, deadline, options)
  return headersNow({ url }, deadline, options)
}

/** As `headersFor`, for a call that has been told of. */
export function headersNow(to: Destination, deadline: Deadline, options: Emitting): Record<string, string> {
  if (!isSentTo(to, options)) return {}
  const headers = encodeDeadline(deadline, options.emit)
  // spread only where there is something: on Node 20 that costs more than all the rest
  return deadline.attempt > 1 ? { ...headers, ...encodeAttempt(deadline.attempt) } : headers
}

/** Tells whoever listens whether a call carries its deadline. */
export function tellOfSending(to: Destination, deadline: Deadline, options: Emitting): void {
  if (deadlineSent.observed) publishSending(to, deadline, options)
}

/** Apart, since a function that makes a closure pays for that at each call, made or not. */
function publishSending(to: Destination, deadline: Deadline, options: Emitting): void {
  deadlineSent.publish(() => ({ deadline, host: to.url.host, sent: isSentTo(to, options) }))
}

function isSentTo(to: Destination, { propagatesTo }: Emitting): boolean {
  return propagatesTo === everyHost || propagatesTo(to.url)
}

const everyHost: HostTest = () => true

/** What a peer says, in its response's headers, about the time it was given. */
export interface PeerAnswer {
  readonly url: URL
  readonly status: number
  readonly serverTiming: string | undefined
  readonly deadlineOutcome: string | undefined
}

/** Takes the peer's report into the ledger, if the peer is to be believed, and says how the call ended for us. */
export function outcomeOfAnswer(
  answer: PeerAnswer,
  running: RunningOperation,
  { trusts }: Pick<ResolvedClientOptions<never>, 'trusts'>,
): Outcome {
  const { status, serverTiming } = answer
  if (serverTiming !== undefined && trusts(answer.url)) {
    running.deadline.ledger.addPeer(running.entry, parseServerTiming(serverTiming))
  }
  if (status < 500) return 'ok'
  const { deadlineOutcome } = answer
  if (!isOutcome(deadlineOutcome)) return 'upstream_error'
  // the peer's deadline was our own timeout for it: an ordinary timeout, with time left for something else
  return deadlineOutcome === 'deadline_exceeded' && hasOwnLimit(running)
    ? 'operation_timeout'
    : deadlineOutcome
}

/** Whether the operation had less than all of the request's time. */
export function hasOwnLimit({ entry }: RunningOperation): boolean {
  return entry.granted < entry.remaining - 1
}
