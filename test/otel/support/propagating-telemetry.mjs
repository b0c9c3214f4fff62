// OpenTelemetry as an application sets it up before anything else is loaded: `node --import ./propagating-telemetry.mjs app.mjs`.
// How, stands as JSON in the variable PROPAGATING; finished spans are told to the parent over IPC.
import * as modules from 'node:module'
import { pathToFileURL } from 'node:url'

const {
  line = 2,
  sdk = 'node',
  express = 'express',
  twice = false,
  copies = 1,
  exporter,
  options = {},
} = JSON.parse(process.env.PROPAGATING)
const apart = new URL('../../../node_modules/.cache/timebudget-otel3/', import.meta.url)
const here = modules.createRequire(import.meta.url)
const require = line === 3 ? modules.createRequire(apart) : here

if (line === 3 || copies === 2) useNewerApi()
const { DeadlinePropagator } = await import('@timebudget/otel')

/** All of this process, or, where there are to be two copies, only our package is given the newer @opentelemetry/api. */
function useNewerApi() {
  modules.registerHooks({
    resolve(specifier, context, next) {
      const isMeant = copies === 1 || context.parentURL?.includes('/packages/otel/')
      const parentURL = isMeant && specifier === '@opentelemetry/api' ? apart.href : context.parentURL
      return next(specifier, { ...context, parentURL })
    },
  })
}

const { propagation } = await import(
  copies === 2 ? pathToFileURL(require.resolve('@opentelemetry/api')).href : '@opentelemetry/api'
)
const spans = {
  onStart() {},
  onEnd(span) {
    const { traceId, spanId } = span.spanContext()
    const parent = (span.parentSpanContext ?? {}).spanId
    process.send?.({ event: 'span', kind: span.kind, name: span.name, traceId, spanId, parent })
  },
  forceFlush: async () => {},
  shutdown: async () => {},
}

function instrumentations() {
  const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
  const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici')
  const stock = [new HttpInstrumentation(), new UndiciInstrumentation()]
  if (twice) stock.push(new HttpInstrumentation(), new UndiciInstrumentation())
  if (line === 3) return stock
  const { ExpressInstrumentation } = here(
    express === 'express-57' ? 'instrumentation-express-57' : '@opentelemetry/instrumentation-express',
  )
  const { KoaInstrumentation } = here('@opentelemetry/instrumentation-koa')
  const { RouterInstrumentation } = here('@opentelemetry/instrumentation-router')
  const { FastifyOtelInstrumentation } = here('@fastify/otel')
  const ofFastify = new FastifyOtelInstrumentation({ registerOnInitialization: true })
  return [
    ...stock,
    new ExpressInstrumentation(),
    new RouterInstrumentation(),
    new KoaInstrumentation(),
    ofFastify,
  ]
}

function exporting() {
  if (exporter === undefined) return []
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http')
  const { SimpleSpanProcessor } = require(
    line === 3 ? '@opentelemetry/sdk-trace' : '@opentelemetry/sdk-trace-base',
  )
  const otlp = new OTLPTraceExporter({ url: exporter })
  return [line === 3 ? new SimpleSpanProcessor({ exporter: otlp }) : new SimpleSpanProcessor(otlp)]
}

const propagator = new DeadlinePropagator(options)
if (sdk === 'propagator') propagation.setGlobalPropagator(propagator)
if (sdk === 'node' || sdk === 'silent') {
  const { NodeSDK } = require('@opentelemetry/sdk-node')
  new NodeSDK({
    textMapPropagator: propagator,
    instrumentations: instrumentations(),
    ...(sdk === 'silent' ? {} : { spanProcessors: [spans, ...exporting()] }),
  }).start()
}
if (sdk === 'instrumentations') {
  propagation.setGlobalPropagator(propagator)
  for (const instrumentation of instrumentations()) instrumentation.enable()
}
