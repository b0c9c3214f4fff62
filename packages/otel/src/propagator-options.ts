import type { TextMapPropagator } from '@opentelemetry/api'
import { type Duration, parseDuration, refuseUnknownOptions } from '@timebudget/core'
import {
  type CodecName,
  codecs,
  defaultAccept,
  defaultEmit,
  type HostRule,
  type HostTest,
  hostTest,
  isPrivateHost,
} from '@timebudget/core/wire'
import { serviceName } from './budget-origin.ts'
import { usualPropagators } from './usual-propagators.ts'

/** What `DeadlinePropagator` takes; every option may be left out. */
export interface PropagatorOptions {
  /** Carries the rest: trace context and the user's baggage. Those that OTEL_PROPAGATORS names, W3C's two by default. */
  readonly inner?: TextMapPropagator | undefined
  /**
   * Hosts whose calls by global fetch, undici and node:http carry the deadline although no client of ours makes them:
   * `true` for all, host patterns (`'*.internal'`), or a function of the URL such as `isPrivateHost`; none.
   */
  readonly inject?: HostRule | undefined
  /** Hosts that are told, in baggage, who set the budget and how large it was; private addresses and loopback. */
  readonly trust?: HostRule | undefined
  /** The codecs read, the earliest deadline counts; our two headers, gRPC's, Connect's and Envoy's. */
  readonly accept?: readonly CodecName[] | undefined
  /** The codecs written; `x-request-deadline` and `x-request-timeout-ms`. */
  readonly emit?: readonly CodecName[] | undefined
  /** `deadlineIn` gives nobody more, whatever the headers say; `'5m'`. */
  readonly max?: Duration | undefined
  /** What this service is called in baggage; what OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say. */
  readonly service?: string | undefined
}

/** `PropagatorOptions` with every default filled in, durations in milliseconds. */
export interface ResolvedPropagatorOptions {
  readonly inner: TextMapPropagator
  readonly injectsInto: HostTest
  readonly trusts: HostTest
  readonly accept: readonly CodecName[]
  readonly emit: readonly CodecName[]
  readonly max: number
  readonly service: string | undefined
}

const optionNames: Readonly<Record<keyof PropagatorOptions, true>> = {
  inner: true,
  inject: true,
  trust: true,
  accept: true,
  emit: true,
  max: true,
  service: true,
}

/** @throws TypeError that names the option which is unknown or cannot be read. */
export function resolvePropagatorOptions(options: PropagatorOptions = {}): ResolvedPropagatorOptions {
  refuseUnknownOptions(options, Object.keys(optionNames))
  return Object.freeze({
    inner: readPropagator(options.inner) ?? usualPropagators(),
    injectsInto: hostTest(options.inject ?? false, 'inject'),
    trusts: hostTest(options.trust ?? isPrivateHost, 'trust'),
    accept: readCodecs('accept', options.accept ?? defaultAccept),
    emit: readCodecs('emit', options.emit ?? defaultEmit),
    max: parseDuration(options.max ?? '5m', 'max'),
    service: readName(options.service) ?? serviceName(),
  })
}

function readPropagator(inner: TextMapPropagator | undefined): TextMapPropagator | undefined {
  const methods = ['inject', 'extract', 'fields'] as const
  if (inner === undefined || methods.every((method) => typeof inner?.[method] === 'function')) return inner
  throw new TypeError('inner: expected a propagator, with inject, extract and fields')
}

function readCodecs(option: string, names: readonly CodecName[]): readonly CodecName[] {
  if (!Array.isArray(names)) throw new TypeError(`${option}: expected a list of codec names`)
  for (const name of names) {
    if (Object.hasOwn(codecs, name)) continue
    throw new TypeError(
      `${option}: no codec is called '${String(name)}'; there are ${Object.keys(codecs).join(', ')}`,
    )
  }
  return [...names]
}

function readName(service: string | undefined): string | undefined {
  if (service === undefined || (typeof service === 'string' && service !== '')) return service
  throw new TypeError('service: expected a name')
}
