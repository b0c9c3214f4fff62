import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type ServerResponse } from 'node:http'
import { connect as connectHttp2, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { type Chain, type HopSettings, threeFrameworks } from './chain.ts'

async function expectAllHopsToldOnce(chain: Chain): Promise<void> {
  for (const hop of chain.hops) {
    expect(await hop.report('aborted')).toMatchObject({ code: 'CLIENT_CLOSED', outcome: 'client_closed' })
    expect(await hop.report('finished')).toMatchObject({ outcome: 'client_closed' })
    expect(hop.all('finished')).toHaveLength(1)
    expect(hop.all('entered')).toHaveLength(1)
    expect(hop.all('crashed')).toEqual([])
    expect(hop.all('logged')).toEqual([])
  }
}

interface Leaving {
  readonly entry?: Partial<HopSettings>
  /** Sends the request; the returned function leaves, and tells what the client had got by then. */
  begin(url: URL): Promise<() => string> | (() => string)
}

function overSocket(url: URL, text: string): () => string {
  const socket = connect(Number(url.port), url.hostname)
  let received = ''
  socket.on('data', (chunk) => (received += String(chunk)))
  socket.on('error', () => undefined)
  socket.write(text)
  return () => {
    socket.destroy()
    return received
  }
}

const leavings: Readonly<Record<string, Leaving>> = {
  'HTTP/1.1 without keep-alive': {
    begin: (url) => overSocket(url, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
  },
  'a keep-alive connection that has served a request before': {
    async begin(url) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const request = httpRequest(url, { agent })
      request.on('error', () => undefined)
      request.end()
      return () => {
        request.destroy()
        agent.destroy()
        return ''
      }
    },
  },
  'a POST whose body has been parsed': {
    begin: (url) =>
      overSocket(
        url,
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello',
      ),
  },
  'a POST with a chunked body': {
    begin: (url) =>
      overSocket(
        url,
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      ),
  },
  'an HTTP/2 stream that is reset': {
    entry: { framework: 'koa', h2: true },
    async begin(url) {
      const session = connectHttp2(url)
      const stream = session.request({ ':path': '/' })
      stream.on('error', () => undefined)
      let received = ''
      stream.on('response', (headers) => (received += String(headers[':status'])))
      await once(session, 'connect')
      return () => {
        stream.close(constants.NGHTTP2_CANCEL)
        session.close()
        return received
      }
    },
  },
}

for (const [name, { entry, begin }] of Object.entries(leavings)) {
  test(`a client that leaves is noticed by every hop, and nothing is written or retried: ${name}`, async () => {
    await using upstream = await slowUpstream()
    using chain = await threeFrameworks(upstream.url, { framework: 'express', ...entry })
    const leave = await begin(new URL(chain.entry.url))
    const last = await upstream.nextRequest()
    expect(leave()).toBe('')
    expect(await last.abandoned).toBe(true)
    await expectAllHopsToldOnce(chain)
    expect(upstream.requests).toHaveLength(1)
  })
}

test('a client that leaves in the middle of its upload is noticed before anything is called', async () => {
  await using upstream = await slowUpstream()
  using chain = await threeFrameworks(upstream.url)
  const leave = overSocket(
    new URL(chain.entry.url),
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhalf',
  )
  // a second connection's answer shows that the first has been read up to here
  await fetch(chain.entry.url, { method: 'POST', headers: { 'x-request-timeout-ms': '100' }, body: 'x' })
  leave()
  await expect
    .poll(() => chain.entry.all('finished').map(({ outcome }) => outcome))
    .toContain('client_closed')
  expect(upstream.requests.length).toBeLessThanOrEqual(1)
})

test('a client that leaves half way through an event stream stops its source', async () => {
  const streams: ServerResponse[] = []
  const source = createServer((_request, response) => {
    streams.push(response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
  }).listen(0, '127.0.0.1')
  await once(source, 'listening')
  using chain = await threeFrameworks(`http://127.0.0.1:${(source.address() as AddressInfo).port}/`)
  const leaving = new AbortController()
  const response = await fetch(chain.entry.url, { signal: leaving.signal })
  const reader = response.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: one\n\n')
  const [stream] = streams
  leaving.abort()
  if (stream?.closed === false) await once(stream, 'close')
  await expectAllHopsToldOnce(chain)
  source.close()
})

test('an event stream that outlives the deadline ends with an error event at every hop', async () => {
  const source = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
  }).listen(0, '127.0.0.1')
  await once(source, 'listening')
  using chain = await threeFrameworks(`http://127.0.0.1:${(source.address() as AddressInfo).port}/`)
  const response = await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '1500' } })
  const text = await response.text()
  expect(text).toContain('data: one\n\n')
  expect(text).toMatch(/event: error\ndata: .*"code":"DEADLINE_EXCEEDED".*\n\n$/)
  // behind the entry, its giving up may be heard of a moment before the own time is up
  expect(await chain.entry.report('finished')).toMatchObject({ outcome: 'deadline_exceeded' })
  for (const hop of chain.hops) {
    const { outcome } = await hop.report('finished')
    expect(['deadline_exceeded', 'client_closed']).toContain(outcome)
  }
  source.closeAllConnections()
  source.close()
})
