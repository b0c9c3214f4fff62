import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type Interceptor,
  type Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerInterceptor,
  type ServerUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'

/** Messages are texts, so that no compiler of protos is needed. */
const text = {
  serialize: (value: string) => Buffer.from(value),
  deserialize: (bytes: Buffer) => bytes.toString(),
}

const method = (name: string, kind: { requestStream: boolean; responseStream: boolean }) => ({
  path: `/bench.Texts/${name}`,
  ...kind,
  requestSerialize: text.serialize,
  requestDeserialize: text.deserialize,
  responseSerialize: text.serialize,
  responseDeserialize: text.deserialize,
})

/** One method of each of the four kinds. */
export const texts: ServiceDefinition = {
  ask: method('Ask', { requestStream: false, responseStream: false }),
  collect: method('Collect', { requestStream: true, responseStream: false }),
  list: method('List', { requestStream: false, responseStream: true }),
  chat: method('Chat', { requestStream: true, responseStream: true }),
}

/** What a handler of `ask` gets; of `collect` too, but for the request. */
export type Handled = ServerUnaryCall<string, string>
export type Respond = sendUnaryData<string>

export interface GrpcServer extends AsyncDisposable {
  readonly address: string
  readonly server: Server
}

/** A real server on a free port; methods that are left out are not implemented. */
export async function grpcServer(
  handlers: UntypedServiceImplementation,
  interceptors: ServerInterceptor[] = [],
): Promise<GrpcServer> {
  const server = new Server({ interceptors })
  server.addService(texts, handlers)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound)
      else reject(error)
    })
  })
  return {
    address: `127.0.0.1:${port}`,
    server,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  }
}

/** A client of the service, its calls as promises where grpc-js has callbacks. */
export class TextsClient extends Client {
  constructor(
    address: string,
    interceptors: Interceptor[] = [],
    options: ClientOptions = {},
    channel: ChannelCredentials = credentials.createInsecure(),
  ) {
    super(address, channel, { ...options, interceptors })
  }

  ask(value: string, { metadata, ...options }: CallSettings = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const { serialize, deserialize } = text
      const path = '/bench.Texts/Ask'
      const done = (error: Error | null, answer?: string): void => {
        if (error === null) resolve(answer ?? '')
        else reject(error)
      }
      const args = [path, serialize, deserialize, value] as const
      const call =
        metadata === undefined
          ? this.makeUnaryRequest(...args, options, done)
          : this.makeUnaryRequest(...args, metadata, options, done)
      options.onCall?.(call)
    })
  }

  collect(options: CallSettings = {}) {
    let done: (error: Error | null, answer?: string) => void = () => undefined
    const answer = new Promise<string>((resolve, reject) => {
      done = (error, value) => {
        if (error === null) resolve(value ?? '')
        else reject(error)
      }
    })
    const path = '/bench.Texts/Collect'
    const call = this.makeClientStreamRequest(path, text.serialize, text.deserialize, options, done)
    return { call, answer }
  }

  list(value: string, options: CallSettings = {}) {
    return this.makeServerStreamRequest('/bench.Texts/List', text.serialize, text.deserialize, value, options)
  }

  chat(options: CallSettings = {}) {
    return this.makeBidiStreamRequest('/bench.Texts/Chat', text.serialize, text.deserialize, options)
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

type CallSettings = CallOptions & {
  readonly metadata?: Metadata
  readonly onCall?: (call: ReturnType<Client['makeUnaryRequest']>) => void
}
