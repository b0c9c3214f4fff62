import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import { systemClock } from '../clock.ts'
import { type Duration, type Floor, parseDuration, parseFloor } from '../duration.ts'
import { refuseUnknownOptions } from '../known-options.ts'
import type { TimeBudgetError } from '../errors.ts'
import { headersOf } from '../wire/decode.ts'
import { type CodecName, codecs, defaultAccept } from '../wire/index.ts'
import { Shutdown } from './shutdown.ts'

/** The user's own answer in place of ours; what is left out stays as ours. An object body is sent as JSON. */
export interface ExceededAnswer {
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | Uint8Array | object | undefined
}

/** Whether inbound deadlines count (`clamp`: at most `max`) or are dropped (`ignore`: the public edge). */
export type Trust = 'clamp' | 'ignore'

/** What `deadline()` of Express, Koa and Fastify and `withDeadline()` take; every option may be left out. */
export interface ServerOptions {
  /**
   * Budget of a request that carries no usable deadline, at most `max`; `'5s'`. As a function of the request it gives longer
   * ones to some; `undefined` is `'5s'`.
   */
  readonly default?: Duration | ((request: IncomingMessage) => Duration | undefined) | undefined
  /** No request gets more, whatever its headers say; `'5m'`. */
  readonly max?: Duration | undefined
  /** Answer at once if less is left on arrival; 0. */
  readonly floor?: Floor | undefined
  /** The handler's deadline comes this much before the caller's, so that its fallback still arrives; 0. */
  readonly reserve?: Duration | undefined
  /** Codecs read, the earliest deadline counts; our two headers, gRPC's, Connect's and Envoy's. */
  readonly accept?: readonly CodecName[] | undefined
  /** `false` spares AsyncLocalStorage for those who pass `req.deadline` on themselves; `true`. */
  readonly ambient?: boolean | undefined
  /** `'clamp'`, `'ignore'`, or a function of the request that says which; `'clamp'`. */
  readonly trust?: Trust | ((request: IncomingMessage) => Trust) | undefined
  /** How far a peer's clock may be off before an absolute deadline alone ends a request; `'50ms'`. */
  readonly skewTolerance?: Duration | undefined
  /** What to do with a header that cannot be read: `'ignore'` it, or `'reject'` the request with 400. */
  readonly malformed?: 'ignore' | 'reject' | undefined
  /** An answer that starts after the deadline becomes the 504 (`'replace'`), or is let through (`'send'`). */
  readonly late?: 'replace' | 'send' | undefined
  /** Write the ledger as Server-Timing: to callers that sent a deadline (`'peers'`), to all, or to none. */
  readonly serverTiming?: boolean | 'peers' | undefined
  /** The user's own answer for lack of time; must return at once. */
  readonly onExceeded?: ((error: TimeBudgetError, request: IncomingMessage) => ExceededAnswer) | undefined
  /** When it aborts, new requests get 503 and running ones keep at most `shutdownGrace`. */
  readonly shutdownSignal?: AbortSignal | undefined
  /** `'10s'`. */
  readonly shutdownGrace?: Duration | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/** What is decided when a request arrives, before anything is known of its route. */
const onArrival = [
  'accept',
  'ambient',
  'trust',
  'skewTolerance',
  'malformed',
  'late',
  'serverTiming',
] as const

/** `ServerOptions` with every default filled in, durations in milliseconds. */
export interface ResolvedServerOptions {
  readonly budget: number
  readonly chooseBudget: ((request: IncomingMessage) => Duration | undefined) | undefined
  /** Whether `default` was given. */
  readonly isBudgetGiven: boolean
  readonly max: number
  readonly floor: Floor
  readonly reserve: number
  readonly accept: readonly CodecName[]
  /** In lower case: those of `accept` and the attempt's. */
  readonly headersRead: ReadonlySet<string>
  readonly ambient: boolean
  readonly trust: (request: IncomingMessage) => Trust
  readonly skewTolerance: number
  readonly malformed: 'ignore' | 'reject'
  readonly late: 'replace' | 'send'
  readonly serverTiming: boolean | 'peers'
  readonly onExceeded: ServerOptions['onExceeded']
  readonly shutdown: Shutdown | undefined
  readonly clock: Clock
  /** Those that were given of the options which the outermost `deadline()` alone decides. */
  readonly decidedOnArrival: ReadonlyArray<(typeof onArrival)[number]>
}

const optionNames: Readonly<Record<keyof ServerOptions, true>> = {
  default: true,
  max: true,
  floor: true,
  reserve: true,
  accept: true,
  ambient: true,
  trust: true,
  skewTolerance: true,
  malformed: true,
  late: true,
  serverTiming: true,
  onExceeded: true,
  shutdownSignal: true,
  shutdownGrace: true,
  clock: true,
}

/**
 * Fills in the defaults and reads the durations.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveServerOptions(options: ServerOptions = {}): ResolvedServerOptions {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const chooseBudget = typeof options.default === 'function' ? options.default : undefined
  const asked =
    options.default === undefined || typeof options.default === 'function'
      ? undefined
      : parseDuration(options.default, 'default')
  const max = parseDuration(options.max ?? '5m', 'max')
  const floor = options.floor ?? 0
  parseFloor(floor, 'floor')
  const clock = options.clock ?? systemClock
  const accept = resolveAccept(options.accept)
  return Object.freeze({
    budget: resolveBudget(asked, max),
    chooseBudget,
    isBudgetGiven: options.default !== undefined,
    max,
    floor,
    reserve: parseDuration(options.reserve ?? 0, 'reserve'),
    accept,
    headersRead: headersOf(accept),
    ambient: oneOf<boolean>('ambient', options.ambient ?? true, [true, false]),
    trust: resolveTrust(options.trust ?? 'clamp'),
    skewTolerance: parseDuration(options.skewTolerance ?? '50ms', 'skewTolerance'),
    malformed: oneOf<'ignore' | 'reject'>('malformed', options.malformed ?? 'ignore', ['ignore', 'reject']),
    late: oneOf<'replace' | 'send'>('late', options.late ?? 'replace', ['replace', 'send']),
    serverTiming: oneOf<boolean | 'peers'>('serverTiming', options.serverTiming ?? 'peers', [
      true,
      false,
      'peers',
    ]),
    onExceeded: optionalFunction('onExceeded', options.onExceeded),
    shutdown: resolveShutdown(options, clock),
    clock,
    decidedOnArrival: onArrival.filter((name) => options[name] !== undefined),
  })
}

/** What nobody has asked for is no more than `max`; what was asked for must not be. */
function resolveBudget(asked: number | undefined, max: number): number {
  if (asked === undefined) return Math.min(5_000, max)
  if (asked > max) throw new TypeError(`default: ${asked} ms are more than max, ${max} ms`)
  return asked
}

function resolveAccept(accept: readonly CodecName[] = defaultAccept): readonly CodecName[] {
  if (!Array.isArray(accept)) throw new TypeError('accept: expected a list of codec names')
  for (const name of accept) {
    if (!Object.hasOwn(codecs, name)) {
      throw new TypeError(
        `accept: no codec is called '${String(name)}'; there are ${Object.keys(codecs).join(', ')}`,
      )
    }
  }
  return [...accept]
}

function resolveTrust(trust: NonNullable<ServerOptions['trust']>): ResolvedServerOptions['trust'] {
  if (typeof trust === 'function') return trust
  return trustAs(oneOf('trust', trust, ['clamp', 'ignore']))
}

/** The same function for the same word. */
export function trustAs(trust: Trust): () => Trust {
  return trust === 'clamp' ? clamp : ignore
}

const clamp = (): Trust => 'clamp'
const ignore = (): Trust => 'ignore'

function resolveShutdown(options: ServerOptions, clock: Clock): Shutdown | undefined {
  const grace = parseDuration(options.shutdownGrace ?? '10s', 'shutdownGrace')
  const signal = options.shutdownSignal
  if (signal === undefined) return undefined
  if (!(signal instanceof AbortSignal)) throw new TypeError('shutdownSignal: expected an AbortSignal')
  return new Shutdown(signal, { grace, clock })
}

function optionalFunction<F>(name: string, value: F): F {
  if (value === undefined || typeof value === 'function') return value
  throw new TypeError(`${name}: expected a function`)
}

function oneOf<T>(name: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value
  throw new TypeError(`${name}: expected ${allowed.map(String).join(' or ')}, got ${String(value)}`)
}
