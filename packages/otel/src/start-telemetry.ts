import { metrics, type TextMapPropagator } from '@opentelemetry/api'
import { type Duration, parseDuration, refuseUnknownOptions } from '@timebudget/core'
import { isApiShared } from './api-copies.ts'
import { guarded, warnOnce } from './guarded.ts'
import { requireInstalled } from './installed.ts'
import { registerLoaderHook } from './loader-hook.ts'
import { areTracersObserved, observeTracers } from './observed-tracers.ts'
import { DeadlinePropagator } from './propagator.ts'
import type { PropagatorOptions } from './propagator-options.ts'
import { type MetricsOptions, recordMetrics } from './record-metrics.ts'
import type { SpanOptions } from './record-spans.ts'
import { DeadlineSpanProcessor } from './span-processor.ts'
import { usualPropagators } from './usual-propagators.ts'

/** What may be said about telemetry; every option may be left out, and the environment's OTEL_* variables say the rest. */
export interface TelemetryOptions {
  /** What this service is called; OTEL_SERVICE_NAME. */
  readonly serviceName?: string | undefined
  readonly spans?: Omit<SpanOptions, 'tracerProvider'> | undefined
  /** `false`: no metrics of ours. */
  readonly metrics?: MetricsOptions | false | undefined
  readonly propagation?: PropagatorOptions | undefined
  /** Further options of NodeSDK, such as `sampler`; its `instrumentations` are added to those that are found installed. */
  readonly sdk?: Readonly<Record<string, unknown>> | undefined
  /** Whether instrumentations are to see what ES modules import; `true`. */
  readonly loaderHook?: boolean | undefined
}

/** Telemetry that has been started. */
export interface Telemetry {
  /** Exports what is left, in at most that time, `'5s'`, and ends it all; never rejects. */
  shutdown(timeout?: Duration): Promise<void>
}

interface Sdk {
  start(): void
  shutdown(): Promise<void>
}

/**
 * Sets up OpenTelemetry with the application's own `@opentelemetry/sdk-node`: spans, metrics and propagation of deadlines,
 * the instrumentations that are installed, and export as OTEL_* variables say. To be called before anything else is imported:
 *
 *     // telemetry.js, for node --import ./telemetry.js
 *     import { startTelemetry } from '@timebudget/otel'
 *     startTelemetry({ serviceName: 'search' })
 *
 * @throws TypeError that names the option which does not exist or cannot be read; Error if the SDK is not installed.
 */
export function startTelemetry(options: TelemetryOptions = {}): Telemetry {
  refuseUnknownOptions(options, ['serviceName', 'spans', 'metrics', 'propagation', 'sdk', 'loaderHook'])
  if (isDisabled()) return { shutdown: () => Promise.resolve() }
  if (areTracersObserved()) {
    warnOnce('startTelemetry', 'telemetry had been started before')
    return { shutdown: () => Promise.resolve() }
  }
  const processor = new DeadlineSpanProcessor(options.spans)
  const sdk = makeSdk(options)
  if (options.loaderHook !== false) guarded('the loader hook', registerLoaderHook, undefined)
  sdk.start()
  // another copy of the API would have neither spans nor metrics, and say nothing
  isApiShared()
  observeTracers(processor)
  const stopMetrics =
    options.metrics === false ? ignore : recordMetrics(metrics.getMeter('@timebudget/otel'), options.metrics)
  const telemetry: Telemetry = {
    async shutdown(timeout = '5s') {
      const limit = parseDuration(timeout, 'timeout')
      process.off('beforeExit', exportTheRest)
      stopMetrics()
      await processor.shutdown()
      await atMost(limit, sdk.shutdown())
    },
  }
  const exportTheRest = (): void => void telemetry.shutdown()
  process.once('beforeExit', exportTheRest)
  return telemetry
}

function isDisabled(): boolean {
  return process.env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true'
}

function makeSdk({ serviceName, propagation, sdk = {} }: TelemetryOptions): Sdk {
  const NodeSDK = requireInstalled('@opentelemetry/sdk-node')?.['NodeSDK']
  if (typeof NodeSDK !== 'function')
    throw new Error('startTelemetry needs the SDK: npm install @opentelemetry/sdk-node')
  const service = propagation?.service ?? serviceName
  const { instrumentations: more, textMapPropagator, ...others } = sdk
  return Reflect.construct(NodeSDK, [
    {
      textMapPropagator: new DeadlinePropagator({ inner: given(textMapPropagator), ...propagation, service }),
      ...(serviceName === undefined ? {} : { serviceName }),
      ...others,
      instrumentations: [...installedInstrumentations(), ...(Array.isArray(more) ? more : [])],
    },
  ])
}

/** The propagator that the application has given the SDK, which goes inside ours; `null` stands for none. */
function given(propagator: unknown): TextMapPropagator | undefined {
  // whether it is one is checked where it is taken
  return propagator === null ? usualPropagators('none') : (propagator as TextMapPropagator | undefined)
}

/** What makes the spans of servers, and of the clients we have a module for. */
const instrumentationNames: Readonly<Record<string, string>> = {
  '@opentelemetry/instrumentation-http': 'HttpInstrumentation',
  '@opentelemetry/instrumentation-undici': 'UndiciInstrumentation',
  '@opentelemetry/instrumentation-pg': 'PgInstrumentation',
  '@opentelemetry/instrumentation-ioredis': 'IORedisInstrumentation',
  '@opentelemetry/instrumentation-redis': 'RedisInstrumentation',
}

function installedInstrumentations(): readonly unknown[] {
  return Object.entries(instrumentationNames).flatMap(([name, exported]) => {
    const Instrumentation = guarded(name, () => requireInstalled(name)?.[exported], undefined)
    return typeof Instrumentation === 'function' ? [Reflect.construct(Instrumentation, [])] : []
  })
}

/** An exporter that nobody answers retries for longer than a process has to end. */
async function atMost(limit: number, ending: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limited = new Promise<void>((resolve) => (timer = setTimeout(resolve, Math.min(limit, 2 ** 31 - 1))))
  try {
    await Promise.race([ending, limited])
  } catch (error) {
    warnOnce('the shutdown of telemetry', error)
  } finally {
    clearTimeout(timer)
  }
}

function ignore(): void {}
