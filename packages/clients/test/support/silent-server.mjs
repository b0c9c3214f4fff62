// One call of each client to a server that never answers, under a deadline of 200 ms: what it ends with, and when the
// server sees the connection (with HTTP/2, the stream) end. Against the built packages, on any Node.
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { attachDeadline as attachAxios } from '@timebudget/clients/axios'
import { deadlineInterceptor as connectInterceptor } from '@timebudget/clients/connect'
import { fetch, wrapFetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import { deadlineInterceptor as grpcInterceptor } from '@timebudget/clients/grpc'
import { attachDeadline as attachKy } from '@timebudget/clients/ky'
import { request } from '@timebudget/clients/node-http'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { Deadline, findTimeBudgetError, runWithDeadline } from '@timebudget/core'
import { create, createFileRegistry } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Client, credentials } from '@grpc/grpc-js'
import axios from 'axios'
import got from 'got'
import ky from 'ky'
import * as undici from 'undici'

const budget = 200
const silent = http.createServer(() => undefined).listen(0, '127.0.0.1')
const silentHttp2 = http2.createServer().listen(0, '127.0.0.1')
silentHttp2.on('session', (session) => session.on('error', () => undefined))
await Promise.all([once(silent, 'listening'), once(silentHttp2, 'listening')])
const url = `http://127.0.0.1:${silent.address().port}/`
const host = `127.0.0.1:${silentHttp2.address().port}`

const agent = new undici.Agent().compose(deadlineInterceptor())
const axiosByHttp = axios.create()
const axiosByFetch = axios.create({ adapter: 'fetch' })
attachAxios(axiosByHttp)
attachAxios(axiosByFetch)
const texts = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: 'texts.proto',
    package: 'bench',
    messageType: [{ name: 'Text' }],
    service: [
      { name: 'Texts', method: [{ name: 'Ask', inputType: '.bench.Text', outputType: '.bench.Text' }] },
    ],
  }),
  () => undefined,
).getService('bench.Texts')
const transport = createConnectTransport({
  baseUrl: url,
  httpVersion: '1.1',
  interceptors: [connectInterceptor()],
})
const grpc = new Client(host, credentials.createInsecure(), { interceptors: [grpcInterceptor()] })

const calls = {
  fetch: () => fetch(url),
  "undici's fetch, wrapped": () => wrapFetch(undici.fetch)(url),
  undici: () => undici.request(url, { dispatcher: agent }),
  'node:http': () => once(request(url).end(), 'response'),
  axios: () => axiosByHttp.get(url),
  'axios by fetch': () => axiosByFetch.get(url),
  got: () => got.extend(deadlineHooks())(url),
  'got.stream': () => once(got.extend(deadlineHooks()).stream(url), 'response'),
  ky: () => attachKy(ky)(url),
  'grpc-js': () =>
    new Promise((resolve, reject) => {
      const done = (error, value) => (error === null ? resolve(value) : reject(error))
      grpc.makeUnaryRequest('/bench.Texts/Ask', () => Buffer.alloc(0), String, undefined, done)
    }),
  Connect: () => createClient(texts, transport).ask({}),
}
// older than these majors of theirs allow: on Node 20 npm installs got 14 and ky 1
if (Number.parseInt(process.versions.node, 10) >= 22) {
  const { default: got15 } = await import('got15')
  const { default: ky2 } = await import('ky2')
  calls['got 15'] = () => got15.extend(deadlineHooks())(url)
  calls['got.stream 15'] = () => once(got15.extend(deadlineHooks()).stream(url), 'response')
  calls['ky 2'] = () => attachKy(ky2)(url)
}

/** Whether the server sees the next call, and when it sees that call end. */
function watch() {
  const seen = { call: false }
  const left = new Promise((resolve) => {
    const leave = () => resolve(performance.now())
    silent.once('request', (call) => {
      seen.call = true
      call.socket.once('close', leave)
    })
    silentHttp2.once('stream', (stream) => {
      seen.call = true
      stream.once('close', leave).on('error', () => undefined)
    })
  })
  return { seen, left }
}

/** A client whose first call takes all its time to get ready, as on a busy machine, is asked anew. */
async function tell(call, attempts = 3) {
  silent.removeAllListeners('request').on('request', () => undefined)
  silentHttp2.removeAllListeners('stream')
  const { seen, left } = watch()
  const deadline = Deadline.after(budget)
  const error = await runWithDeadline(deadline, call).then(
    () => 'it was answered',
    (failure) => failure,
  )
  const failedAt = performance.now()
  const [after, [entry, ...others]] = [deadline.elapsed(), deadline.ledger.entries]
  if (!seen.call && attempts > 1) return tell(call, attempts - 1)
  const closedAt = await Promise.race([
    left,
    new Promise((resolve) => setTimeout(resolve, 2_000, Infinity).unref()),
  ])
  deadline.settle()
  return {
    name: error.name,
    code: error.code,
    ours: findTimeBudgetError(error)?.code,
    outcome: others.length === 0 ? entry?.outcome : others.length,
    after: Math.round(after),
    closed: Number.isFinite(closedAt),
    closedAfter: Math.round(closedAt - failedAt),
  }
}

const told = {}
for (const [client, call] of Object.entries(calls)) told[client] = await tell(call)
process.stdout.write(JSON.stringify(told), () => process.exit(0))
