import { once } from 'node:events'
import { createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescService,
  type Message,
} from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import type { Interceptor, Transport } from '@connectrpc/connect'
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node'

const method = (name: string, kind: { clientStreaming?: boolean; serverStreaming?: boolean } = {}) => ({
  name,
  inputType: '.bench.Text',
  outputType: '.bench.Text',
  ...kind,
})

// Described here, so that no compiler of protos is needed.
const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: 'bench.proto',
    package: 'bench',
    syntax: 'proto3',
    messageType: [
      {
        name: 'Text',
        field: [
          {
            name: 'text',
            jsonName: 'text',
            number: 1,
            type: FieldDescriptorProto_Type.STRING,
            label: FieldDescriptorProto_Label.OPTIONAL,
          },
        ],
      },
    ],
    service: [
      {
        name: 'Texts',
        method: [
          method('Ask'),
          method('Collect', { clientStreaming: true }),
          method('List', { serverStreaming: true }),
          method('Chat', { clientStreaming: true, serverStreaming: true }),
        ],
      },
    ],
  }),
  () => undefined,
)

/** `bench.Text`, with its one field. */
export type Text = Message & { readonly text: string }

export const textSchema = registry.getMessage('bench.Text') as DescMessage
export const textsService = registry.getService('bench.Texts') as DescService

export function textOf(value: string): Text {
  return create(textSchema, { text: value }) as Text
}

/** Handlers by method; those left out are not implemented. */
export type Handlers = Readonly<Record<string, unknown>>

export interface ConnectServer extends AsyncDisposable {
  readonly url: string
  readonly server: Http2Server
  /** How many requests have arrived, whatever became of them. */
  readonly requests: ReadonlyArray<Readonly<Record<string, unknown>>>
}

/** A real HTTP/2 server on a free port that speaks the three protocols. */
export async function connectServer(
  handlers: Handlers,
  interceptors: Interceptor[] = [],
): Promise<ConnectServer> {
  const requests: Array<Record<string, unknown>> = []
  const handle = connectNodeAdapter({
    routes: (router) => void router.service(textsService, handlers as never),
    interceptors,
  })
  const sessions = new Set<{ destroy(): void }>()
  const server = createServer((request, response) => {
    requests.push({ ...request.headers })
    handle(request, response)
  })
  server.on('session', (session) => sessions.add(session))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    requests,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface TransportSettings {
  readonly interceptors?: Interceptor[]
  readonly defaultTimeoutMs?: number
}

/** The three protocols that a client may speak. */
export const protocols: ReadonlyArray<{
  readonly name: string
  readonly header: 'connect-timeout-ms' | 'grpc-timeout'
  readonly transport: (url: string, settings?: TransportSettings) => Transport
}> = [
  {
    name: 'Connect',
    header: 'connect-timeout-ms',
    transport: (baseUrl, settings) => createConnectTransport({ baseUrl, httpVersion: '2', ...settings }),
  },
  {
    name: 'gRPC',
    header: 'grpc-timeout',
    transport: (baseUrl, settings) => createGrpcTransport({ baseUrl, ...settings }),
  },
  {
    name: 'gRPC-web',
    header: 'grpc-timeout',
    transport: (baseUrl, settings) => createGrpcWebTransport({ baseUrl, httpVersion: '2', ...settings }),
  },
]

interface CallSettings {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
}

/** The service's client, its messages as texts. */
export function textsClient(transport: Transport) {
  const find = (name: string): never =>
    textsService.methods.find((described) => described.name === name) as never
  const messages = async function* (values: Iterable<string> | AsyncIterable<string>) {
    for await (const value of values) yield textOf(value)
  }
  const stream = (name: string, values: Iterable<string> | AsyncIterable<string>, settings: CallSettings) =>
    transport.stream(
      find(name),
      settings.signal,
      settings.timeoutMs,
      settings.headers,
      messages(values) as never,
    )
  const collected = async (response: ReturnType<typeof stream>): Promise<string[]> => {
    const texts: string[] = []
    for await (const message of (await response).message as AsyncIterable<Text>) texts.push(message.text)
    return texts
  }
  return {
    async ask(value: string, settings: CallSettings = {}): Promise<string> {
      const { signal, timeoutMs, headers } = settings
      const response = await transport.unary(find('Ask'), signal, timeoutMs, headers, textOf(value))
      return (response.message as unknown as Text).text
    },
    collect: async (values: Iterable<string> | AsyncIterable<string>, settings: CallSettings = {}) =>
      (await collected(stream('Collect', values, settings))).join(),
    list: (value: string, settings: CallSettings = {}) => collected(stream('List', [value], settings)),
    chat: (values: Iterable<string> | AsyncIterable<string>, settings: CallSettings = {}) =>
      collected(stream('Chat', values, settings)),
  }
}
