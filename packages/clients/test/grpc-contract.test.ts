import { credentials, type ServerWritableStream } from '@grpc/grpc-js'
import { deadlineInterceptor } from '@timebudget/clients/grpc'
import { everyClientContract } from './every-client/contract.ts'
import { type ArrivedCall, rpcBench, type RpcLibrary } from './every-client/rpc-bench.ts'
import { grpcServer, type Handled, type Respond, TextsClient } from './support/grpc-bench.ts'

const grpc: RpcLibrary = {
  async serve(handling, arrived) {
    const server = await grpcServer({
      ask(call: Handled, respond: Respond) {
        arrived(arrivedCall(call))
        if (handling === 'answers') respond(null, 'done')
        if (handling === 'is slow') setTimeout(() => respond(null, 'done'), 150)
      },
      list(call: ServerWritableStream<string, string>) {
        arrived(arrivedCall(call))
        call.write('begun')
      },
    })
    return {
      port: Number(server.address.split(':')[1]),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
  connect({ host, isSecure }, options) {
    const interceptors = options === undefined ? [] : [deadlineInterceptor(options)]
    const client = new TextsClient(
      host,
      interceptors,
      {},
      isSecure ? credentials.createSsl() : credentials.createInsecure(),
    )
    return {
      call: (method) => (method === 'ask' ? client.ask('?') : client.list('?').toArray()),
      [Symbol.dispose]: () => client.close(),
    }
  },
}

/** grpc-js keeps `grpc-timeout` to itself, and counts in whole milliseconds. */
function arrivedCall(call: Handled | ServerWritableStream<string, string>): ArrivedCall {
  const left = Number(call.getDeadline()) - Date.now()
  const cancelled = new Promise((resolve) => call.once('cancelled', resolve))
  return { told: left === Infinity ? undefined : left, abandoned: () => cancelled }
}

everyClientContract({
  name: 'grpc-js',
  operation: 'grpc',
  failsWith: "the library's error",
  bench: (behaviour, options) => rpcBench(grpc, behaviour, options),
})
