// As an application sets telemetry up that wants spans of its framework's middleware too: `node --import ./framework-telemetry.mjs`.
import { createRequire } from 'node:module'
import { startTelemetry } from '@timebudget/otel'

const require = createRequire(import.meta.url)
const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express')
const { RouterInstrumentation } = require('@opentelemetry/instrumentation-router')
const { KoaInstrumentation } = require('@opentelemetry/instrumentation-koa')
const { FastifyOtelInstrumentation } = require('@fastify/otel')

startTelemetry({
  sdk: {
    instrumentations: [
      new ExpressInstrumentation(),
      new RouterInstrumentation(),
      new KoaInstrumentation(),
      new FastifyOtelInstrumentation({ registerOnInitialization: true }),
    ],
  },
})
