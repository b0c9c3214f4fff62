import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { createSecureContext } from 'node:tls'
import { setTimeout as wait } from 'node:timers/promises'
import { operation } from '@timebudget/core'
import { deadline } from '@timebudget/express'
import { sse } from '@timebudget/sse'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { selfSigned } from '../../packages/clients/test/support/self-signed.ts'
import { freePort } from '../support/free-port.ts'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { deferred } from './deferred.ts'
import { type Run, startBin } from './run-bin.ts'
import { runCommand } from './run-command.ts'
import { frameworkNames, listen, retrieveAndGenerate, serve, serveBytes, serviceWith } from './services.ts'

/** What `--json` prints, as far as these tests look at it. */
interface ProbeJson {
  readonly outcome: string
  readonly exitCode: number
  readonly status: number | null
  readonly sent: Readonly<Record<string, string>>
  readonly firstByte: number
  readonly firstEvent: number | null
  readonly total: number
  readonly overrun: number
  readonly events: number | null
  readonly operations: readonly { readonly path: string; readonly spent: number | null }[]
}

async function probeJson(...args: string[]): Promise<ProbeJson> {
  const { printed, complained } = await runCommand(['probe', '--json', ...args])
  expect(complained).toBe('')
  return JSON.parse(printed)
}

describe.each(frameworkNames)('%s', (framework) => {
  test('a request that is answered in time is drawn with its operations, each under its parent', async () => {
    const url = await serviceWith(framework, () => retrieveAndGenerate(60))
    const { exitCode, printed } = await runCommand(['probe', '--budget', '5s', url])
    expect(exitCode).toBe(0)
    expect(printed).toContain('200 OK, ok')
    expect(printed).toMatch(/^ {2}first byte .*█.* ms$/m)
    expect(printed).toMatch(/^ {4}retrieve .*[█-▏].* ms$/m)
    expect(printed).toMatch(/^ {6}embed .*[█-▏].* ms$/m)
    expect(printed).toMatch(/^ {4}generate .*█.* ms$/m)
    expect(printed).toMatch(/left of 5 s/)
  })

  test('a request that runs out of time shows what was running then', async () => {
    const url = await serviceWith(framework, () => retrieveAndGenerate(20_000))
    const { exitCode, printed } = await runCommand(['probe', '--budget', '1500ms', url])
    expect(exitCode).toBe(3)
    expect(printed).toContain('504 Gateway Timeout, deadline_exceeded')
    expect(printed).toMatch(/^ {4}generate .*░[│┃]?░* +still running$/m)
    expect(printed).toMatch(/^ {4}retrieve .*│.* ms$/m)
  })

  test('too little time to begin with is told apart', async () => {
    const url = await serviceWith(framework, () => retrieveAndGenerate(0), { floor: '1m' })
    const { exitCode, printed } = await runCommand(['probe', '--budget', '5s', url])
    expect(exitCode).toBe(4)
    expect(printed).toContain('short_circuited')
    expect(printed).toContain('the request needs 60000 ms')
  })
})

test("an operation's own timeout is another outcome", async () => {
  const url = await serviceWith('express', async () => {
    await operation('slow', { timeout: 20 }, () => wait(5000, undefined, { ref: false }))
    return {}
  })
  const { exitCode, printed } = await runCommand(['probe', url])
  expect(exitCode).toBe(5)
  expect(printed).toMatch(/^ {4}slow .* ms {2}operation_timeout$/m)
})

test('both headers of the pair are sent once the connection stands, and say no more than is left', async () => {
  let seen: NodeJS.Dict<string | string[]> = {}
  const url = await serve((request, response) => {
    seen = { ...request.headers, body: request.method ?? '' }
    response.end()
  })
  const before = Date.now()
  const { sent } = await probeJson('--budget', '3s', url)
  expect(Number(seen['x-request-timeout-ms'])).toBeLessThanOrEqual(3000)
  expect(Number(seen['x-request-deadline'])).toBeGreaterThanOrEqual(before)
  expect(Number(seen['x-request-deadline'])).toBeLessThanOrEqual(Date.now() + 3000)
  expect(sent).toEqual({
    'x-request-deadline': seen['x-request-deadline'],
    'x-request-timeout-ms': seen['x-request-timeout-ms'],
  })
})

test('method, headers, body and other codecs are as the flags say', async () => {
  const requests: unknown[] = []
  const url = await serve((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      const { method, headers } = request
      requests.push({ method, body, ...headers })
      response.end()
    })
  })
  await probeJson('-d', '{"q":1}', '-H', 'X-Tenant: a:b', '--emit', 'grpc-timeout', url)
  await probeJson('-X', 'put', '-d', 'text', '-H', 'x-request-timeout-ms: soon', url)
  expect(requests).toEqual([
    expect.objectContaining({
      method: 'POST',
      body: '{"q":1}',
      'content-type': 'application/json',
      'x-tenant': 'a:b',
      'grpc-timeout': expect.stringMatching(/^\d{1,8}[munHSM]$/),
    }),
    expect.objectContaining({
      method: 'PUT',
      body: 'text',
      'content-type': 'text/plain; charset=utf-8',
      'x-request-timeout-ms': 'soon',
    }),
  ])
  expect(requests[0]).not.toHaveProperty('x-request-timeout-ms')
})

test('an answer that comes after the deadline is no success, whatever its status', async () => {
  const url = await serve((_request, response) => void setTimeout(() => response.end('{}'), 600))
  const { outcome, exitCode, status, overrun } = await probeJson('--budget', '400ms', '--grace', '9s', url)
  expect({ outcome, exitCode, status }).toEqual({ outcome: 'deadline_exceeded', exitCode: 3, status: 200 })
  expect(overrun).toBeGreaterThan(0)
})

test('a service that never answers is left when the grace after the deadline is over', async () => {
  const closed = deferred()
  const url = await serve((request) => request.socket.on('close', closed.resolve))
  const { exitCode, printed } = await runCommand(['probe', '--budget', '1s', '--grace', '100ms', url])
  expect(exitCode).toBe(3)
  expect(printed).toMatch(/^deadline_exceeded$/m)
  expect(printed).toContain('no answer')
  await closed.promise
})

test('a body without an end is left as well, and not kept', async () => {
  const url = await serve((_request, response) => {
    response.on('drain', () => pour())
    const pour = (): void => {
      while (response.write('x'.repeat(65_536)));
    }
    pour()
  })
  const { outcome, status } = await probeJson('--budget', '600ms', '--grace', '100ms', url)
  expect({ outcome, status }).toEqual({ outcome: 'deadline_exceeded', status: 200 })
})

test('another status than 2xx is an HTTP error, and a redirect to another host is not followed', async () => {
  let followed = 0
  const other = await serve((_request, response) => {
    followed += 1
    response.end()
  })
  const url = await serve((request, response) => {
    if (request.url === '/away') response.writeHead(307, { location: other }).end()
    else if (request.url === '/proxy') response.writeHead(504).end()
    else response.writeHead(500).end()
  })
  expect(await runCommand(['probe', url])).toMatchObject({
    exitCode: 6,
    printed: expect.stringContaining('500 Internal Server Error, http_error'),
  })
  expect(await runCommand(['probe', `${url}away`])).toMatchObject({
    exitCode: 6,
    printed: expect.stringContaining(`it redirects to ${other}`),
  })
  expect(await runCommand(['probe', `${url}proxy`])).toMatchObject({
    exitCode: 6,
    printed: expect.stringContaining('without X-Deadline-Outcome'),
  })
  expect(followed).toBe(0)
})

test('nobody there, a service that dies, and an answer that breaks off are connection failures', async () => {
  expect(await runCommand(['probe', `127.0.0.1:${await freePort()}`])).toMatchObject({
    exitCode: 7,
    printed: expect.stringContaining('nobody listens there'),
  })
  const dies = await serve((request) => request.socket.destroy())
  expect(await runCommand(['probe', dies])).toMatchObject({
    exitCode: 7,
    printed: expect.stringContaining('closed without an answer'),
  })
  const breaks = await serve((request, response) => {
    response.write('half of it', () => request.socket.destroy())
  })
  expect(await runCommand(['probe', breaks])).toMatchObject({
    exitCode: 7,
    printed: expect.stringContaining('200 OK, cut_off'),
  })
})

test('a stream of events is read to its end, with the time of its first event', async () => {
  const app = express()
  app.use(deadline())
  app.use(async (_request, response) => {
    const stream = sse(response)
    await wait(150)
    for (const text of ['one ', 'two ', 'three']) await stream.token(text)
    await wait(100)
    await stream.done()
  })
  const { outcome, events, firstByte, firstEvent, total } = await probeJson(await serve(app))
  expect({ outcome, events }).toEqual({ outcome: 'ok', events: 4 })
  expect(firstEvent).toBeGreaterThan(firstByte + 50)
  expect(total).toBeGreaterThan((firstEvent ?? Infinity) + 50)
})

test('a stream that the deadline ends is exceeded, by its error event or by breaking off', async () => {
  const app = express()
  app.use(deadline())
  app.get('/sse', (_request, response) => {
    void sse(response).token('and then')
  })
  app.get('/raw', (_request, response) => {
    response.type('text/plain').write('and then')
  })
  const url = await serve(app)
  const told = await runCommand(['probe', '--budget', '900ms', `${url}sse`])
  expect(told.exitCode).toBe(3)
  expect(told.printed).toContain('the stream ended with an error: the deadline of')
  const broken = await runCommand(['probe', '--budget', '900ms', `${url}raw`])
  expect(broken.exitCode).toBe(3)
  expect(broken.printed).toContain('broken off at the deadline')
})

describe('hostile answers', () => {
  /** Everything that steers a terminal but the ends of lines. */
  const steering = /(?!\n)[\p{Cc}\p{Cf}]/u

  const escape = '\u{1b}]0;pwned\u{7}\u{1b}[2J'

  test.each([
    [
      'a status line and Server-Timing',
      `HTTP/1.1 200 ${escape}\r\nServer-Timing: a\u{1b}[31mb;dur=5, "${escape}";dur=1, c;dur=2;desc="${escape}"\r\ncontent-length: 0\r\n\r\n`,
    ],
    ['a redirect', `HTTP/1.1 302 Found\r\nLocation: http://x/\u{9b}31m\r\ncontent-length: 0\r\n\r\n`],
    ['a problem', problem({ detail: `${escape}\r\nforged line \u{202e}` })],
    ['an outcome', 'HTTP/1.1 200 OK\r\nX-Deadline-Outcome: \u{9b}31m\r\ncontent-length: 0\r\n\r\n'],
    [
      'an event',
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: error\ndata: \u{1b}[2Jgone\r\n\r\n',
    ],
  ])('nothing of %s steers the terminal', async (_what, bytes) => {
    const url = await serveBytes(bytes, { end: true })
    const { printed, complained } = await runCommand(['probe', url])
    expect(complained).toBe('')
    expect(printed).toContain(url)
    expect(printed).not.toMatch(steering)
    const json = await runCommand(['probe', '--json', url])
    expect(json.printed).not.toMatch(steering)
    expect(() => JSON.parse(json.printed)).not.toThrow()
  })

  test('a Server-Timing that cannot be read is passed over', async () => {
    const broken =
      ';;;,,"unclosed;dur=1, =, ;dur, a.b.c;dur=-1;start=1e99, ..;dur=3, ok;dur=NaN;start=x, fine;dur=7'
    const url = await serveBytes(
      `HTTP/1.1 200 OK\r\nServer-Timing: ${broken}\r\nServer-Timing: second;dur=3\r\ncontent-length: 0\r\n\r\n`,
    )
    const { exitCode, printed } = await runCommand(['probe', url], { COLUMNS: '40' })
    expect(exitCode).toBe(0)
    expect(printed).toContain('200 OK, ok')
  })

  test('hundreds of operations and endless names stay within the width', async () => {
    const entries = Array.from({ length: 400 }, (_, index) => `${'n'.repeat(40)}${index};dur=1`).join(',')
    const url = await serveBytes(
      `HTTP/1.1 200 OK\r\nServer-Timing: ${entries.slice(0, 12_000)}\r\ncontent-length: 0\r\n\r\n`,
    )
    const { exitCode, printed } = await runCommand(['probe', url], { COLUMNS: '50' })
    expect(exitCode).toBe(0)
    expect(longest(printed)).toBeLessThanOrEqual(50)
  })

  test('headers without an end, and what is no HTTP, are connection failures', async () => {
    const long = await serveBytes(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`)
    expect(await runCommand(['probe', long])).toMatchObject({
      exitCode: 7,
      printed: expect.stringContaining('longer than 16 KiB'),
    })
    const noise = await serveBytes('\u{1b}[31mSSH-2.0-whatever\r\n')
    const { exitCode, printed } = await runCommand(['probe', noise])
    expect(exitCode).toBe(7)
    expect(printed).not.toMatch(steering)
  })

  function problem(body: object): string {
    // the bytes are sent one by one: what has no place in Latin-1 has to be escaped
    const json = JSON.stringify(body).replace(
      /[^ -~]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    return `HTTP/1.1 504 x\r\nX-Deadline-Outcome: shed\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`
  }
})

describe('many', () => {
  test('so many at a time give percentiles, outcomes and the time of each operation', async () => {
    let at = 0
    let most = 0
    let served = 0
    const url = await serviceWith('fastify', async () => {
      at += 1
      most = Math.max(most, at)
      served += 1
      const isSlow = served % 4 === 0
      try {
        await operation('work', isSlow ? { timeout: 30 } : {}, () =>
          wait(isSlow ? 2000 : 40, undefined, { ref: false }),
        )
        return {}
      } finally {
        at -= 1
      }
    })
    const json = JSON.parse(
      (await runCommand(['probe', '-n', '40', '--concurrency', '4', '--json', url])).printed,
    )
    expect(most).toBeLessThanOrEqual(4)
    expect(served).toBe(40)
    expect(json).toMatchObject({
      count: 40,
      done: 40,
      concurrency: 4,
      exitCode: 5,
      outcomes: { ok: 30, operation_timeout: 10 },
      total: { count: 40, p50: expect.any(Number) },
      operations: [{ path: 'work', count: 40, notOk: 10 }],
    })
    expect(json.total.p50).toBeGreaterThanOrEqual(25)
    expect(json.total.p99).toBeGreaterThanOrEqual(json.total.p50)
    const table = await runCommand(['probe', '-n', '8', url])
    expect(table.printed).toMatch(/^ {2}ok +6 +75 % {2}█+$/m)
    expect(table.printed).toMatch(/^ {2}operation_timeout +2 +25 % {2}█+$/m)
    expect(table.printed).toMatch(/^ +P50 +P95 +P99 +most +not ok$/m)
    expect(table.printed).toMatch(/^ {4}work( +[\d.]+ m?s){4} +2$/m)
  })

  test('all in time exits with 0, and nothing is complained of', async () => {
    const url = await serve((_request, response) => response.end())
    expect(await runCommand(['probe', '-n', '40', '-c', '20', url])).toMatchObject({
      exitCode: 0,
      complained: '',
    })
  })
})

describe('Ctrl-C', () => {
  test('leaves the request, so that the service sees it, and says how far it was', async () => {
    const arrived = deferred()
    const left = deferred()
    const url = await serve((request) => {
      arrived.resolve()
      request.socket.on('close', left.resolve)
    })
    const { child, finished } = startBin(['probe', '--budget', '1m', url])
    await arrived.promise
    child.kill('SIGINT')
    await left.promise
    const { exitCode, printed } = await finished
    expect(exitCode).toBe(130)
    expect(printed).toContain('you stopped it')
  })

  test('of many sums up those that were done', async () => {
    const late = deferred()
    let served = 0
    const url = await serve((_request, response) => {
      served += 1
      if (served <= 3) response.end()
      else late.resolve()
    })
    const { child, finished } = startBin(['probe', '-n', '50', '-c', '1', '--budget', '1m', url])
    await late.promise
    child.kill('SIGINT')
    const { exitCode, printed } = await finished
    expect(exitCode).toBe(130)
    expect(printed).toContain('3 requests (of 50: stopped)')
    expect(printed).toMatch(/^ {2}ok +3 +100 %/m)
  })
})

test('a certificate that nobody vouches for is taken with --insecure alone', async () => {
  const plain = await listen(createTlsServer(selfSigned, (_request, response) => response.end()))
  const url = plain.replace('http:', 'https:')
  expect(await runCommand(['probe', url])).toMatchObject({
    exitCode: 7,
    printed: expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT'),
  })
  expect(await runCommand(['probe', '--insecure', url])).toMatchObject({ exitCode: 0 })
})

test('what is left is said once the connection is secure, not before', async () => {
  let told: string | undefined
  const server = createTlsServer(
    {
      ...selfSigned,
      SNICallback: (_name, done) => void setTimeout(() => done(null, createSecureContext(selfSigned)), 300),
    },
    (request, response) => {
      told = String(request.headers['x-request-timeout-ms'])
      response.end()
    },
  )
  const { port } = new URL(await listen(server))
  await runCommand(['probe', '--insecure', '--budget', '5s', `https://localhost:${port}`])
  expect(Number(told)).toBeLessThanOrEqual(4700)
})

describe('the picture', () => {
  test.each([40, 80])('fits %i columns', async (columns) => {
    const url = await serviceWith('koa', () => retrieveAndGenerate(20_000))
    const { printed } = await runCommand(['probe', '--budget', '700ms', url], { COLUMNS: String(columns) })
    expect(longest(printed)).toBeLessThanOrEqual(columns)
  })

  test('has colours only where asked for, and ASCII alone where nothing else can be shown', async () => {
    const url = await serviceWith('express', () => retrieveAndGenerate(20))
    const plain = await runCommand(['probe', url])
    expect(plain.printed).not.toContain('\u{1b}')
    expect(plain.printed).toContain('█')
    const coloured = await startBin(['probe', url], { FORCE_COLOR: '1' }).finished
    expect(coloured.printed).toContain('\u{1b}[32m')
    expect((await runCommand(['probe', url], { FORCE_COLOR: '1', NO_COLOR: '1' })).printed).not.toContain(
      '\u{1b}',
    )
    for (const [args, env] of [
      [['--ascii'], {}],
      [[], { LC_ALL: 'C' }],
      [[], { TERM: 'dumb' }],
    ] as const) {
      const { printed } = await runCommand(['probe', ...args, url], env)
      expect(printed).toMatch(/^[\n -~]+$/)
      expect(printed).toContain('###')
    }
  })

  test('a password in the URL is sent and not shown', async () => {
    let authorization: string | undefined
    const url = await serve((request, response) => {
      authorization = request.headers.authorization
      response.end()
    })
    const { printed } = await runCommand(['probe', url.replace('://', '://user:secret@')])
    expect(authorization).toBe(`Basic ${Buffer.from('user:secret').toString('base64')}`)
    expect(printed).not.toContain('secret')
  })
})

describe.each(nodeMatrix())('on Node $version', ({ path }) => {
  test('requests, streams and refusals come to the same', async (context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const run = (...args: string[]): Promise<Run> => startBin(['probe', ...args], {}, node).finished
    const url = await serve((request, response) => {
      if (request.url === '/slow') return
      response.setHeader('content-type', 'text/event-stream')
      response.end('data: 1\n\ndata: 2\n\n')
    })
    const runs = await Promise.all([
      run(url),
      run('-b', '200ms', '--grace', '50ms', `${url}slow`),
      run(`localhost:${await freePort()}`),
    ])
    expect(runs).toMatchObject([
      { exitCode: 0, printed: expect.stringContaining('2 events'), complained: '' },
      { exitCode: 3, complained: '' },
      { exitCode: 7, complained: '' },
    ])
  })
})

test('a reader that has read enough ends it without complaint', async () => {
  const url = await serve((_request, response) => response.end())
  const { child, finished } = startBin(['probe', '--json', url])
  child.stdout?.destroy()
  await once(child, 'exit')
  expect((await finished).complained).toBe('')
})

function longest(text: string): number {
  return Math.max(...text.split('\n').map((line) => Array.from(line).length))
}
