// One server of a unary call: `node rpc-process.mjs "Connect" "timebudget"`.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { serve } from '../support/worker.mjs'

const [protocol, variant] = process.argv.slice(2)
const isOurs = variant === 'timebudget'
const open = { Connect: openConnect, gRPC: openGrpc }
const port = await open[protocol]()
serve({ port: () => port })

async function openConnect() {
  const { connectNodeAdapter } = await import('@connectrpc/connect-node')
  const { textsService } = await import('./texts-service.mjs')
  const { deadlineServerInterceptor } = await import('@timebudget/clients/connect')
  const adapter = connectNodeAdapter({
    routes: (router) => router.service(textsService, { ask: ({ text }) => ({ text }) }),
    interceptors: isOurs ? [deadlineServerInterceptor()] : [],
  })
  const server = createServer(adapter).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

async function openGrpc() {
  const { Server, ServerCredentials } = await import('@grpc/grpc-js')
  const { deadlineServerInterceptor } = await import('@timebudget/clients/grpc')
  const { ask } = await import('./raw-call.mjs')
  const server = new Server({ interceptors: isOurs ? [deadlineServerInterceptor()] : [] })
  server.addService({ ask }, { ask: (call, callback) => callback(null, call.request) })
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound)
      else reject(error)
    })
  })
}
