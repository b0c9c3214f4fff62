import type { HandlerContext } from '@connectrpc/connect'
import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineInterceptor } from '@timebudget/clients/connect'
import { codecs } from '@timebudget/core/wire'
import { everyClientContract } from './every-client/contract.ts'
import { rpcBench, type RpcLibrary } from './every-client/rpc-bench.ts'
import { connectServer, protocols, type Text, textOf, textsClient } from './support/connect-bench.ts'

function library({ header, transport }: (typeof protocols)[number]): RpcLibrary {
  return {
    async serve(handling, arrived) {
      const arrive = ({ requestHeader, signal }: HandlerContext): void => {
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
        arrived({ told: codecs[header].parse(requestHeader.get(header) ?? ''), abandoned: () => aborted })
      }
      const server = await connectServer({
        async ask(_: Text, context: HandlerContext) {
          arrive(context)
          if (handling === 'is slow') await sleep(150)
          if (handling === 'is silent') await new Promise(() => undefined)
          return textOf('done')
        },
        async *list(_: Text, context: HandlerContext) {
          arrive(context)
          yield textOf('begun')
          await new Promise(() => undefined)
        },
      })
      return {
        port: Number(new URL(server.url).port),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      }
    },
    connect({ host, isSecure }, options) {
      const interceptors = options === undefined ? [] : [deadlineInterceptor(options)]
      const texts = textsClient(transport(`${isSecure ? 'https' : 'http'}://${host}`, { interceptors }))
      // its connections end with the server
      return { call: (method) => texts[method]('?'), [Symbol.dispose]: () => undefined }
    },
  }
}

for (const protocol of protocols) {
  everyClientContract({
    name: `Connect-ES over ${protocol.name}`,
    operation: 'connect',
    failsWith: "the library's error",
    bench: (behaviour, options) => rpcBench(library(protocol), behaviour, options),
  })
}
