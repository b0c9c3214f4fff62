import { once } from 'node:events'
import http, { type ClientRequest, IncomingMessage } from 'node:http'
import https from 'node:https'
import { type AddressInfo, Socket } from 'node:net'
import { expect, test } from 'vitest'
import { BudgetTooSmallError } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { get, type NodeRequest, request, wrapRequest } from '../src/node-http.ts'
import { codesOf, failureOf, onlyEntry, pause, underDeadline, until } from './support/calls.ts'
import { answerTo, textOf } from './support/node-requests.ts'
import { serveHttp, serveHttps, serveRaw } from './support/servers.ts'

const relative = 'x-request-timeout-ms'

/** What a request fails with, or its response. */
async function errorOf(asked: ClientRequest): Promise<unknown> {
  return failureOf(once(asked, 'response'))
}

test('get asks for a URL and ends the request itself', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  await underDeadline(2_000, async (deadline) => {
    const [response] = (await once(get(upstream.url), 'response')) as [IncomingMessage]
    expect(await textOf(response)).toBe('done')
    expect(onlyEntry(deadline)).toMatchObject({ name: 'http', outcome: 'ok' })
    expect((await upstream.nextRequest()).headers[relative]).toMatch(/^\d+$/)
  })
})

test('the protocol of the URL, of the options or of the agent decides between http and https', async () => {
  await using server = await serveHttps((asked, response) => response.end(asked.headers[relative]))
  const { hostname, port } = new URL(server.url)
  const lax = { rejectUnauthorized: false }
  const agent = new https.Agent(lax)
  await underDeadline(2_000, async () => {
    for (const asked of [
      request(server.url, lax),
      request(new URL(server.url), lax),
      request({ protocol: 'https:', hostname, port, ...lax }),
      request({ agent, hostname, port }),
      wrapRequest(https.request)({ hostname, port, ...lax }),
    ]) {
      expect(await (await answerTo(asked)).text()).toMatch(/^\d+$/)
    }
  })
  agent.destroy()
})

test('what is left is written when the headers leave, not when the request is made', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  await underDeadline(2_000, async () => {
    const asked = request(upstream.url, { method: 'POST' })
    await pause(300)
    await answerTo(asked, 'late')
    expect(Number((await upstream.nextRequest()).headers[relative])).toBeLessThanOrEqual(1_700)
  })
})

test.each([
  { form: 'a list of names and values', headers: ['Host', 'h', 'X-Own', 'a', 'X-Request-Timeout-Ms', '9'] },
  {
    form: 'a list of pairs',
    headers: [
      ['Host', 'h'],
      ['X-Own', 'a'],
      ['X-Request-Timeout-Ms', '9'],
    ],
  },
  {
    form: 'a record that expects to continue',
    headers: { 'X-Own': 'a', 'X-Request-Timeout-Ms': '9', expect: '100-continue' },
  },
])('headers given as $form carry what is left, once', async ({ headers }) => {
  const seen: string[][] = []
  await using server = await serveHttp((asked, response) => {
    seen.push(asked.rawHeaders)
    response.end('done')
  })
  await underDeadline(2_000, async () => {
    const asked = request(server.url, { method: 'POST', headers: headers as http.OutgoingHttpHeaders })
    expect(await (await answerTo(asked, 'x')).text()).toBe('done')
    const [raw = []] = seen
    const values = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === relative)
    expect(values).toHaveLength(1)
    expect(Number(values[0])).toBeGreaterThan(1_000)
    expect(raw).toContain('X-Own')
  })
})

test('arguments reach Node as they are, except that undefined ones are left out', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const { hostname, port, href } = new URL(upstream.url)
  const calls: unknown[][] = []
  const base: NodeRequest = (...args: unknown[]) => {
    calls.push(args)
    return Reflect.apply(http.request, undefined, args)
  }
  const governed = wrapRequest(base)
  const options = { hostname, port, host: {} as string }
  await underDeadline(2_000, async () => {
    expect(await (await answerTo(governed(options))).text()).toBe('done')
    const response = await new Promise<IncomingMessage>((resolve) => {
      Reflect.apply(governed, undefined, [href, undefined, resolve]).end()
    })
    expect(await textOf(response)).toBe('done')
  })
  expect(calls[0]?.[0]).toBe(options)
  expect(options).toEqual({ hostname, port, host: {} })
  expect(calls[1]).toEqual([href, expect.any(Function)])
})

test('what Node cannot make a request of it refuses in its own words', async () => {
  await underDeadline(2_000, (deadline) => {
    expect(() => request('no url')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_URL' }))
    expect(() => request('ftp://127.0.0.1/')).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_PROTOCOL' }),
    )
    expect(deadline.ledger.entries).toMatchObject([{ outcome: 'error' }])
  })
})

test('a refusal below the floor is thrown by the very call', async () => {
  await underDeadline(100, () => {
    const governed = wrapRequest(http.request, { floor: 200 })
    expect(() => governed('http://127.0.0.1:9/')).toThrow(BudgetTooSmallError)
  })
})

test('a request that is never ended is cut at the deadline', async () => {
  const heads: string[] = []
  await using server = await serveRaw((_socket, head) => heads.push(head))
  await underDeadline(150, async (deadline) => {
    const asked = request(server.url, { method: 'POST' })
    asked.flushHeaders()
    expect(await errorOf(asked)).toBe(deadline.reason)
    expect(asked.destroyed).toBe(true)
    expect(asked.socket?.destroyed).toBe(true)
    expect(heads).toHaveLength(1)
  })
})

test('a name that is never resolved, a handshake that never ends and a connection that is never made are cut', async () => {
  await using silent = await serveRaw(() => undefined)
  const { hostname, port } = new URL(silent.url)
  const neverConnects = new http.Agent()
  neverConnects.createConnection = () => undefined
  await underDeadline(200, async (deadline) => {
    const stuck = [
      request({ hostname: 'slow.test', port, lookup: () => undefined }),
      request({ protocol: 'https:', hostname, port }),
      request({ hostname, port, agent: neverConnects }),
    ]
    for (const asked of stuck) asked.end()
    const begun = performance.now()
    for (const failure of await Promise.all(stuck.map(errorOf))) expect(failure).toBe(deadline.reason)
    expect(performance.now() - begun).toBeLessThan(500)
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(Array(3).fill('deadline_exceeded'))
  })
})

test('after a cut the keep-alive agent serves on', async () => {
  await using server = await serveHttp((asked, response) => {
    if (asked.url !== '/hang') response.end('done')
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  await underDeadline(100, async (deadline) => {
    expect(await errorOf(get(`${server.url}hang`, { agent }))).toBe(deadline.reason)
  })
  for (let turn = 0; turn < 3; turn += 1) {
    await underDeadline(2_000, async () => {
      expect(await (await answerTo(request(server.url, { agent }))).text()).toBe('done')
    })
  }
  // the one that was cut, and one for all others
  expect(server.connections).toBe(2)
  agent.destroy()
})

test('a response that nobody listens for is thrown away, as Node does', async () => {
  await using upstream = await slowUpstream({ delay: 10 })
  await underDeadline(2_000, async (deadline) => {
    const asked = get(upstream.url)
    await once(asked, 'close')
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
})

test('a response without a body is complete, whether it is read or not', async () => {
  await using server = await serveHttp((_asked, response) => response.writeHead(204).end())
  await underDeadline(150, async (deadline) => {
    const asked = get(server.url)
    asked.on('error', () => undefined)
    await once(asked, 'response')
    expect(onlyEntry(deadline).outcome).toBe('ok')
    await until(() => deadline.expired)
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
})

test('a caller that destroys its request, or stops reading, has cancelled', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await using silent = await serveRaw(() => undefined)
  await underDeadline(5_000, async (deadline) => {
    const destroyed = get(silent.url)
    setTimeout(() => destroyed.destroy(), 20)
    expect(codesOf(await errorOf(destroyed))).toEqual(['ECONNRESET'])
    const [response] = (await once(get(upstream.url), 'response')) as [IncomingMessage]
    for await (const _ of response) break
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
    const asked = get(upstream.url)
    const [unwanted] = (await once(asked, 'response')) as [IncomingMessage]
    asked.on('error', () => undefined)
    unwanted.destroy(new Error('not what I wanted'))
    expect(await failureOf(once(unwanted, 'close'))).toMatchObject({ message: 'not what I wanted' })
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(Array(3).fill('cancelled'))
  })
})

test('whoever listens to the request alone hears of a body that is cut', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(150, async (deadline) => {
    const outcome = await new Promise((resolve) => {
      const asked = get(upstream.url, (response) => response.resume().on('end', () => resolve('ended')))
      asked.on('error', resolve)
    })
    expect(outcome).toBe(deadline.reason)
  })
})

test('a body that is cut with no listener left on the request harms nobody', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(150, async (deadline) => {
    const asked = get(upstream.url)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    asked.removeAllListeners('error')
    expect(await failureOf(textOf(response))).toBe(deadline.reason)
  })
})

test.each(['upgrade', 'connect'] as const)(
  'after %s the connection is the caller’s, and the deadline leaves it alone',
  async (kind) => {
    const line =
      kind === 'upgrade' ? '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo' : '200 Connected'
    await using server = await serveRaw((socket) => {
      socket.write(`HTTP/1.1 ${line}\r\n\r\n`)
      socket.removeAllListeners('data')
      socket.pipe(socket)
    })
    await underDeadline(150, async (deadline) => {
      const asked = request(
        server.url,
        kind === 'upgrade'
          ? { headers: { connection: 'upgrade', upgrade: 'echo' } }
          : { method: 'CONNECT', path: 'example.com:443' },
      )
      asked.end()
      const [, socket] = await once(asked, kind)
      expect(onlyEntry(deadline).outcome).toBe('ok')
      await until(() => deadline.expired)
      await pause(20)
      socket.write('still here')
      expect(String((await once(socket, 'data'))[0])).toBe('still here')
      socket.destroy()
    })
  },
)

test('an upgrade that nobody listens for ends the operation', async () => {
  await using server = await serveRaw((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
  })
  await underDeadline(2_000, async (deadline) => {
    const asked = get(server.url, { headers: { connection: 'upgrade', upgrade: 'echo' } })
    await once(asked, 'close')
    expect(onlyEntry(deadline).outcome).toBe('upstream_error')
  })
})

test('100 Continue is waited for, and the wait ends at the deadline', async () => {
  const server = http.createServer((asked, response) => asked.pipe(response))
  server.on('checkContinue', (asked: IncomingMessage, response: http.ServerResponse) => {
    if (asked.url === '/never') return
    response.writeContinue()
    asked.pipe(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const options = { method: 'POST', headers: { expect: '100-continue' } }
  await underDeadline(300, async (deadline) => {
    const asked = request(url, options)
    await once(asked, 'continue')
    expect(await (await answerTo(asked, 'go on')).text()).toBe('go on')
    expect(await errorOf(request(`${url}never`, options))).toBe(deadline.reason)
  })
  server.closeAllConnections()
  server.close()
})

test('a response that is complete before its connection breaks can be read to its end', async () => {
  await using server = await serveRaw((socket) => {
    socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nbusy')
    setTimeout(() => socket.resetAndDestroy(), 30)
  })
  await underDeadline(2_000, async (deadline) => {
    const asked = request(server.url, { method: 'POST' })
    const broken = new Promise((resolve) => asked.on('error', resolve))
    asked.write('some')
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    expect(codesOf(await broken)).toEqual(['ECONNRESET'])
    expect(await textOf(response)).toBe('busy')
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
})

test("a request that is cut in an agent's queue says 'error' and then 'close', each once, and takes no connection later", async () => {
  await using upstream = await slowUpstream({ delay: 250 })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const first = http.get(upstream.url, { agent })
  await underDeadline(80, async (deadline) => {
    const said: unknown[] = []
    const queued = get(upstream.url, { agent })
    queued.on('error', (error) => said.push(error)).on('close', () => said.push('close'))
    await until(() => said.length === 2)
    await (await answerTo(first)).text()
    await pause(20)
    expect(said).toEqual([deadline.reason, 'close'])
    expect(upstream.requests).toHaveLength(1)
  })
  agent.destroy()
})

test('a body that breaks off right before the deadline has met the deadline', async () => {
  await using server = await serveRaw((socket, head) => {
    const moment = Number(/x-request-deadline: (\d+)/i.exec(head)?.[1])
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun ')
    const breakOff = (): unknown =>
      head.startsWith('GET /reset') ? socket.resetAndDestroy() : socket.destroy()
    setTimeout(breakOff, moment - Date.now() - 8)
  })
  for (const path of ['reset', 'end']) {
    await underDeadline(250, async (deadline) => {
      const asked = get(`${server.url}${path}`)
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      asked.on('error', (error) => expect(error).toBe(deadline.reason))
      expect(await failureOf(textOf(response))).toBe(deadline.reason)
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  }
})

test("the peer's report is read of what stands in for a response too, which may have no raw headers", async () => {
  await using upstream = await slowUpstream({ delay: 60_000 })
  for (const raw of [[], undefined]) {
    await underDeadline(2_000, async (deadline) => {
      const asked = request(upstream.url).on('error', () => {})
      const standIn = Object.assign(new IncomingMessage(new Socket()), {
        statusCode: 200,
        headers: { 'server-timing': 'retrieve;dur=12' },
        rawHeaders: raw,
      })
      asked.emit('response', standIn)
      expect(deadline.ledger.entries.map(({ path }) => path)).toEqual(['http', 'http.retrieve'])
      asked.destroy()
    })
  }
})
