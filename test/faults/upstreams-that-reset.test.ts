import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { fetch } from '@timebudget/clients/fetch'
import { request as requestHttp } from '@timebudget/clients/node-http'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { Agent, request as requestUndici } from 'undici'
import { afterAll, describe, expect, test } from 'vitest'
import { serve } from '../../packages/core/test/server/host.ts'
import { nodeHttp } from '../../packages/core/test/server/node-http.ts'
import { hosts } from './hosts.ts'
import { RawClient } from './raw-client.ts'

/** More than is sent at once. */
const upload = 'x'.repeat(1_000_000)
const whole = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ndone'

/** What an upstream says at which point, before it resets the connection; the request so far is given. */
type Script = (socket: Socket, received: { readonly head: string; readonly length: number }) => boolean

function saying(answer: string): Script {
  return (socket, { length }) => length >= upload.length && socket.write(answer)
}

const stages: Readonly<Record<string, Script>> = {
  'before anything has been sent': () => true,
  'in the middle of the headers': (_socket, { head }) => head !== '',
  'after the headers': (_socket, { head }) => head.includes('\r\n\r\n'),
  'in the middle of the body': (_socket, { length }) => length > 50_000,
  'after the body, before the answer': (_socket, { length }) => length >= upload.length,
  'in the middle of the answer’s headers': saying(whole.slice(0, 40)),
  'after the answer’s headers': saying(whole.slice(0, -4)),
  'in the middle of the answer': saying(whole.slice(0, -2)),
}

interface Upstream extends AsyncDisposable {
  readonly url: string
  /** Its connections so far. */
  readonly sockets: ReadonlySet<Socket>
  mend(): void
}

/** An upstream that follows the script until it is told to mend its ways. */
async function listen(script: Script): Promise<Upstream> {
  let isMended = false
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let head = ''
    let length = 0
    const act = (): void => {
      if (isMended) {
        if (length >= upload.length) {
          length = 0
          socket.write(whole)
        }
      } else if (script(socket, { head, length })) setImmediate(() => socket.resetAndDestroy())
    }
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      if (head === '') head = chunk.toString('latin1')
      length += chunk.length
      act()
    })
    act()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sockets,
    mend: () => void (isMended = true),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const agent = new Agent()
const dispatcher = agent.compose(deadlineInterceptor())
afterAll(() => agent.destroy())

async function fetchWhole(url: string): Promise<string> {
  return (await fetch(url, { method: 'POST', body: upload })).text()
}

const clients: Readonly<Record<string, (url: string) => Promise<string>>> = {
  fetch: fetchWhole,
  async undici(url) {
    const { body } = await requestUndici(url, { method: 'POST', body: upload, dispatcher })
    return body.text()
  },
  'node:http': (url) =>
    new Promise((resolve, reject) => {
      requestHttp(url, { method: 'POST' }, (response) => text(response).then(resolve, reject))
        .on('error', reject)
        .end(upload)
    }),
}

const combinations = [
  ...hosts.map((host) => ({ host, client: 'fetch' })),
  ...['undici', 'node:http'].map((client) => ({ host: nodeHttp, client })),
]

describe.each(combinations)(
  'an upstream that resets the connection: $host.name, $client',
  ({ host, client }) => {
    const ask = clients[client] ?? fetchWhole

    test.each(Object.entries(stages))(
      '%s is answered with one 502, and can be asked again',
      async (_stage, script) => {
        await using upstream = await listen(script)
        await using server = await serve(host, {
          handler: () => ask(upstream.url),
          options: { default: '15s' },
        })
        using caller = await RawClient.to({ port: server.port, host: 'localhost' })
        caller.get('/')
        expect(await caller.answered()).toMatchObject([{ status: 502, isWhole: true }])
        expect(await server.finished.nth(1)).toMatchObject({ status: 502, outcome: 'upstream_error' })
        upstream.mend()
        caller.get('/')
        expect(await caller.answered(2)).toMatchObject([{ status: 502 }, { status: 200, body: 'done' }])
        expect(server.finished.all.map(({ outcome }) => outcome)).toEqual(['upstream_error', 'ok'])
      },
    )

    test('while nothing is asked of it is not noticed by the next call', async () => {
      await using upstream = await listen(() => false)
      upstream.mend()
      await using server = await serve(host, {
        handler: () => ask(upstream.url),
        options: { default: '15s' },
      })
      using caller = await RawClient.to({ port: server.port, host: 'localhost' })
      for (let count = 1; count <= 3; count += 1) {
        caller.get('/')
        expect((await caller.answered(count)).at(-1)).toMatchObject({ status: 200, body: 'done' })
        for (const socket of upstream.sockets) {
          if (!socket.destroyed) await once(socket.resetAndDestroy(), 'close')
        }
        await new Promise(setImmediate)
      }
    })
  },
)
