import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { context, propagation, trace } from '@opentelemetry/api'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { type ServerOptions, withDeadline } from '@timebudget/core/server'
import { onTestFinished } from 'vitest'

// OpenTelemetry's own, which makes the spans of requests: a module is instrumented when it is required
const instrumentation = new HttpInstrumentation()
const { createServer }: Http = createRequire(import.meta.url)('node:http')

interface Http {
  createServer(listener: Parameters<typeof withDeadline>[0]): Server
}

/** The spans that a test's own SDK has ended, by name and as a whole. */
export interface Traced {
  readonly provider: NodeTracerProvider
  readonly spans: () => readonly ReadableSpan[]
  readonly named: (name: string) => ReadableSpan
}

/** A real SDK of the test's own, global while the test runs. */
export function traced(...processors: SpanProcessor[]): Traced {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({
    spanProcessors: [...processors, new SimpleSpanProcessor(exporter)],
  })
  provider.register()
  instrumentation.setTracerProvider(provider)
  onTestFinished(async () => {
    await provider.shutdown()
    trace.disable()
    context.disable()
    propagation.disable()
  })
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans()
  return {
    provider,
    spans,
    named(name) {
      const found = spans().find((span) => span.name === name)
      if (found === undefined) throw new Error(`no span is called ${name}: ${namesOf(spans())}`)
      return found
    },
  }
}

/** A server of node:http under deadlines, closed when the test ends. */
export async function serve(
  listener: Parameters<typeof withDeadline>[0],
  options?: ServerOptions,
): Promise<string> {
  const server = createServer(withDeadline(listener, options))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function namesOf(spans: readonly ReadableSpan[]): string {
  return spans.map(({ name }) => name).join(', ')
}

/** Settles with a span of this name, which ends a moment after its request is answered. */
export async function endOf({ spans }: Traced, name: string): Promise<ReadableSpan> {
  const until = Date.now() + 5_000
  while (Date.now() < until) {
    const found = spans().find((span) => span.name === name)
    if (found !== undefined) return found
    await new Promise(setImmediate)
  }
  throw new Error(`no span called ${name} ended in 5 s: ${namesOf(spans())}`)
}

/** A promise and what settles it. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}
