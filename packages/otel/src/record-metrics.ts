import { createNoopMeter, type Meter } from '@opentelemetry/api'
import { refuseUnknownOptions } from '@timebudget/core'
import { type GenAiNames, recordGenAi } from './gen-ai-metrics.ts'
import { warnOnce } from './guarded.ts'
import type { Recording } from './listening-metrics.ts'
import { recordLlm } from './llm-metrics.ts'
import { BoundedNames } from './name-metrics.ts'
import { recordOperations } from './operation-metrics.ts'
import { recordRequests } from './request-metrics.ts'
import { recordResilience } from './resilience-metrics.ts'
import { SaneMeter } from './sane-metrics.ts'
import { recordWire } from './wire-metrics.ts'
import { recordWork } from './work-metrics.ts'

/** What may be said about metrics; every option may be left out. */
export interface MetricsOptions {
  /** So many names of a kind (operations, peers, models, ...) are told apart; those that come later are `other`; 50. */
  readonly maxNames?: number | undefined
  /** Whose names the `gen_ai.*` metrics of calls to models get; `'v0.1'`. `false` for none, where an SDK records its own. */
  readonly genAi?: GenAiNames | false | undefined
}

/** Meters that are recorded into: a second recording would count everything twice. */
const recorded = new WeakSet<Meter>()

/**
 * Records what becomes of deadlines, requests, operations and calls to models, until the returned function is called.
 * An SDK must have been started before; into one meter it is recorded once.
 *
 *     const stop = recordMetrics(metrics.getMeter('timebudget'))
 *
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export function recordMetrics(meter: Meter, options: MetricsOptions = {}): () => void {
  refuseUnknownOptions(options, ['maxNames', 'genAi'])
  const { maxNames = 50, genAi = 'v0.1' } = options
  if (!Number.isInteger(maxNames) || maxNames < 1)
    throw new TypeError(`maxNames: expected a whole number of at least 1, got ${String(maxNames)}`)
  if (genAi !== false && genAi !== 'v0.1' && genAi !== 'v1.41')
    throw new TypeError(`genAi: expected 'v0.1', 'v1.41' or false, got ${String(genAi)}`)

  if (isNoop(meter)) {
    // the API for metrics, unlike that for traces, hands nothing on to an SDK that comes later
    if (!isMeantToBeNone()) warnOnce('recordMetrics', 'no SDK has been started: call it after `sdk.start()`')
    return ignore
  }
  if (recorded.has(meter)) {
    warnOnce('a second recordMetrics', 'this meter is recorded into already')
    return ignore
  }
  recorded.add(meter)
  const stops: Array<() => void> = [() => recorded.delete(meter)]
  const recording: Recording = {
    meter: new SaneMeter(meter),
    names: () => new BoundedNames(maxNames),
    listen(channel, listener) {
      const unsubscribe = channel.subscribe((payload) => {
        try {
          listener(payload)
        } catch (error) {
          warnOnce(`recordMetrics on ${channel.name}`, error)
        }
      })
      stops.push(unsubscribe)
    },
    onStop: (clear) => stops.push(clear),
  }
  recordRequests(recording)
  recordOperations(recording)
  recordWork(recording)
  recordWire(recording)
  recordResilience(recording)
  recordLlm(recording)
  if (genAi !== false) recordGenAi(recording, genAi)

  return function stopRecording(): void {
    for (const stop of stops.splice(0)) stop()
  }
}

function isNoop(meter: Meter): boolean {
  return meter.constructor === createNoopMeter().constructor
}

/** Whether the environment wants no metrics. */
function isMeantToBeNone(
  { OTEL_SDK_DISABLED, OTEL_METRICS_EXPORTER }: NodeJS.ProcessEnv = process.env,
): boolean {
  return OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true' || OTEL_METRICS_EXPORTER?.trim() === 'none'
}

function ignore(): void {}
