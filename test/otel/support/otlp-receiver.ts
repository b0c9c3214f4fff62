import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A span as it was received. */
export interface ReceivedSpan {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  /** Empty for the root of a trace. */
  readonly parentSpanId: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** 0 unset, 2 error. */
  readonly status: number
}

/** A receiver of OTLP in JSON over HTTP, closed when the test ends. */
export interface OtlpReceiver {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** The headers of every request it got. */
  readonly headers: readonly IncomingHttpHeaders[]
  /** Waits until the spans it has are as they are waited for; throws after 20 s with what it has. */
  until(hasCome: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>
}

interface OtlpValue {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
}

interface OtlpAttribute {
  readonly key: string
  readonly value: OtlpValue
}

interface OtlpTraces {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: ReadonlyArray<{
      readonly spans: ReadonlyArray<
        Omit<ReceivedSpan, 'service' | 'attributes' | 'status' | 'parentSpanId'> & {
          readonly parentSpanId?: string
          readonly attributes: readonly OtlpAttribute[]
          readonly status?: { readonly code?: number }
        }
      >
    }>
  }>
}

export async function otlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const headers: IncomingHttpHeaders[] = []
  const waiting = new Set<() => void>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    headers.push(request.headers)
    if (request.url === '/v1/traces') spans.push(...spansIn(JSON.parse(body)))
    response.setHeader('content-type', 'application/json').end('{}')
    for (const wake of [...waiting]) wake()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    until: (hasCome) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`still waiting; there are ${spans.map(({ name }) => name).join(', ')}`)),
          20_000,
        )
        const look = (): void => {
          if (!hasCome(spans)) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve(spans)
        }
        waiting.add(look)
        look()
      }),
  }
}

function spansIn({ resourceSpans }: OtlpTraces): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId = '', kind, attributes, status }) => ({
        service: String(valuesOf(resource.attributes)['service.name']),
        name,
        traceId,
        spanId,
        parentSpanId,
        kind,
        attributes: valuesOf(attributes),
        status: status?.code ?? 0,
      })),
    ),
  )
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf({ stringValue, intValue, doubleValue, boolValue }: OtlpValue): unknown {
  return stringValue ?? doubleValue ?? boolValue ?? (intValue === undefined ? undefined : Number(intValue))
}
