// Asks a gRPC server, so many at once over one connection, and says how long the answers took.
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { serve } from '../support/worker.mjs'
import { ask } from './raw-call.mjs'

const clients = new Map()
const message = Buffer.from('hello world')

serve({ run })

async function run({ port, requests, connections = 16, timeout }) {
  const client = clients.get(port) ?? new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  clients.set(port, client)
  const took = new Float64Array(requests)
  let begun = 0
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (begun < requests) {
        const index = begun
        begun += 1
        const sentAt = performance.now()
        await askOnce(client, timeout)
        took[index] = performance.now() - sentAt
      }
    }),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  took.sort()
  return { perSecond: requests / seconds, p99: took[Math.floor(requests * 0.99)] }
}

function askOnce(client, timeout) {
  const options = timeout === undefined ? {} : { deadline: Date.now() + timeout }
  return new Promise((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = ask
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      message,
      new Metadata(),
      options,
      (error) => (error === null ? resolve() : reject(error)),
    )
  })
}
