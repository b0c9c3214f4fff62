import { refuseUnknownOptions, type Duration } from '@timebudget/core'
import type { Pressure } from './floor-pressure.ts'
import type { FloorStore } from './floor-store.ts'
import { type LatencyOptions, resolveLatencyOptions, type ResolvedLatencyOptions } from './latency-options.ts'
import { durationAboveZero } from './option-values.ts'

/** How much a floor may refuse, whatever it has learned. */
export interface FloorCap {
  /** Of the starts in the window; 0.2, as in Finagle's deadline filter. */
  readonly share?: number | undefined
  /** `'10s'`, as in Finagle's deadline filter. */
  readonly window?: Duration | undefined
}

/** How a floor is learned and what it does; every option may be left out. */
export interface LearnedFloorOptions extends LatencyOptions {
  /** Below this chance of finishing within what is left, it refuses; 0.05. */
  readonly minChance?: number | undefined
  /** In place of `minChance`, for steady operations: it refuses with less left than this share of the calls takes. */
  readonly quantile?: number | undefined
  /** This share of what it would refuse begins all the same, so that the floor can come down again; 0.05. */
  readonly explore?: number | undefined
  /** `'observe'`: events say what it would refuse; `'enforce'`: it refuses. `'observe'`. */
  readonly mode?: 'observe' | 'enforce' | undefined
  /** It refuses only while this says so; by default while at least 5 % of the calls in the window run out of time. */
  readonly pressure?: Pressure | undefined
  /** How much it may refuse; `null`: no limit. */
  readonly cap?: FloorCap | null | undefined
  /** Where the replicas of a service share what they learn; by default each learns for itself. */
  readonly store?: FloorStore | undefined
  /** Decides what explores; `Math.random`. */
  readonly random?: (() => number) | undefined
}

/** `LearnedFloorOptions` with every default filled in, durations in milliseconds. */
export interface ResolvedFloorOptions extends ResolvedLatencyOptions {
  readonly share: number
  readonly explore: number
  readonly enforce: boolean
  readonly pressure: (() => boolean) | undefined
  readonly cap: { readonly share: number; readonly window: number }
  readonly store: FloorStore | undefined
  readonly random: () => number
}

const capWindow = 10_000

const optionNames: Readonly<Record<keyof LearnedFloorOptions, true>> = {
  window: true,
  minSamples: true,
  clock: true,
  minChance: true,
  quantile: true,
  explore: true,
  mode: true,
  pressure: true,
  cap: true,
  store: true,
  random: true,
}

/**
 * Fills in the defaults and reads the durations.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveFloorOptions(options: LearnedFloorOptions = {}): ResolvedFloorOptions {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const { mode = 'observe', store, random = Math.random } = options
  if (mode !== 'observe' && mode !== 'enforce')
    throw new TypeError(`mode: expected 'observe' or 'enforce', got ${String(mode)}`)
  if (typeof random !== 'function') throw new TypeError('random: expected a function')
  if (store !== undefined && (typeof store?.get !== 'function' || typeof store.set !== 'function'))
    throw new TypeError('store: expected an object with get(key) and set(key, value, ttl)')
  return {
    ...resolveLatencyOptions(options),
    share: resolveShare(options),
    explore: shareOf(options.explore ?? 0.05, 'explore'),
    enforce: mode === 'enforce',
    pressure: resolvePressure(options.pressure),
    cap: resolveCap(options.cap),
    store,
    random,
  }
}

function resolveShare({ minChance, quantile }: LearnedFloorOptions): number {
  if (quantile === undefined) return shareOf(minChance ?? 0.05, 'minChance')
  if (minChance !== undefined) throw new TypeError('quantile: give either this or minChance')
  return shareOf(quantile, 'quantile')
}

function resolvePressure(pressure: Pressure | undefined): (() => boolean) | undefined {
  if (pressure === undefined || typeof pressure === 'function') return pressure
  if (typeof pressure === 'object' && pressure !== null && 'busy' in pressure) return () => pressure.busy
  throw new TypeError('pressure: expected a function, or an object that is busy or not')
}

function resolveCap(cap: FloorCap | null = {}): ResolvedFloorOptions['cap'] {
  if (cap === null) return { share: Infinity, window: capWindow }
  refuseUnknownOptions(cap, ['share', 'window'], 'cap')
  const { share = 0.2, window = capWindow } = cap
  return { share: shareOf(share, 'cap.share'), window: durationAboveZero(window, 'cap.window') }
}

function shareOf(value: number, option: string): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new TypeError(`${option}: expected a share from 0 to 1, got ${String(value)}`)
}
