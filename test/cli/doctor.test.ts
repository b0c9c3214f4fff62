import { createServer as createHttpServer, request as httpRequest } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { fetch as fetchUnderDeadline } from '@timebudget/clients/fetch'
import { operation, systemClock } from '@timebudget/core'
import { type ServerOptions, withDeadline } from '@timebudget/core/server'
import { sse } from '@timebudget/sse'
import { describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { deferred } from './deferred.ts'
import { startBin } from './run-bin.ts'
import { runCommand } from './run-command.ts'
import { frameworkNames, listen, serve, serviceWith } from './services.ts'

/** What `--json` prints, as far as these tests look at it. */
interface DoctorJson {
  readonly exitCode: number
  readonly checks: readonly {
    readonly name: string
    readonly state: 'holds' | 'fails' | 'unseen'
    readonly seen: string
    readonly advice: { readonly say: string; readonly code: readonly object[]; readonly more: string } | null
  }[]
}

async function examine(...args: string[]): Promise<{
  readonly exitCode: number | null
  readonly states: Readonly<Record<string, string>>
  readonly json: DoctorJson
}> {
  const { exitCode, printed, complained } = await runCommand(['doctor', '--json', ...args])
  expect(complained).toBe('')
  const json: DoctorJson = JSON.parse(printed)
  expect(json.exitCode).toBe(exitCode)
  return { exitCode, json, states: Object.fromEntries(json.checks.map(({ name, state }) => [name, state])) }
}

function seen({ checks }: DoctorJson, name: string): string {
  return checks.find((check) => check.name === name)?.seen ?? ''
}

const allHold = {
  reads: 'holds',
  malformed: 'holds',
  'never-extends': 'holds',
  'passes-on': 'holds',
  clocks: 'holds',
  'in-time': 'holds',
  stops: 'holds',
}

/** Work that takes a while and ends with its signal. */
async function takeAWhile(signal: AbortSignal): Promise<object> {
  await wait(120, undefined, { signal })
  return {}
}

describe.each(frameworkNames)('%s', (framework) => {
  test('with deadline() and a client that knows it, everything holds, seen at a leaf', async () => {
    const port = await freePort()
    const url = await serviceWith(
      framework,
      async () => ({ of: await (await fetchUnderDeadline(`http://127.0.0.1:${port}/`)).json() }),
      { max: '60s' },
    )
    const { exitCode, states, json } = await examine('--leaf', String(port), url)
    expect(states).toEqual(allHold)
    expect(exitCode).toBe(0)
    expect(seen(json, 'never-extends')).toMatch(/^115 days were cut to (59\.\d s|60 s|1 min)/)
    expect(seen(json, 'passes-on')).toMatch(/^\d{4} of 5000 ms arrived at the leaf/)
  })
})

test('what cannot be seen from outside is said so, and is no fault', async () => {
  const url = await serviceWith('express', takeAWhile)
  const { exitCode, states } = await examine(url)
  expect(states).toEqual({ ...allHold, 'passes-on': 'unseen', stops: 'unseen' })
  expect(exitCode).toBe(0)
})

test('a URL that is too fast to run out of time is said so', async () => {
  const url = await serviceWith('fastify', () => Promise.resolve({}))
  const { exitCode, states, json } = await examine(url)
  expect(states['in-time']).toBe('unseen')
  expect(seen(json, 'in-time')).toContain('too fast')
  expect(exitCode).toBe(0)
})

test('a service without timebudget is told what to install, once', async () => {
  const url = await serve((_request, response) => void setTimeout(() => response.end('{}'), 120))
  const { exitCode, printed } = await runCommand(['doctor', url])
  expect(exitCode).toBe(1)
  expect(printed).toMatch(/^ {2}✗ reads the deadline +200 to X-Request-Timeout-Ms: 0/m)
  expect(printed).toMatch(/^ {2}\? answers 504 by the deadline +not judged/m)
  expect(printed).toMatch(/^ {2}\? survives what it cannot read/m)
  expect(printed).toMatch(/^reads the deadline$/m)
  expect(printed.match(/@timebudget\/express/g)).toHaveLength(1)
  expect(printed).toContain('1 does not')
})

test('a service that forgets the deadline on its way out fails at the leaf', async () => {
  const port = await freePort()
  const url = await serviceWith('koa', async () => ({
    status: (await globalThis.fetch(`http://127.0.0.1:${port}/`)).status,
  }))
  const { exitCode, states, json } = await examine('--leaf', String(port), url)
  expect(states).toEqual({ ...allHold, 'passes-on': 'fails', stops: 'fails' })
  expect(exitCode).toBe(1)
  expect(json.checks.find(({ name }) => name === 'stops')?.advice?.say).toContain('nobody waits for')
})

test('a service that does not call the leaf is asked to be pointed at it', async () => {
  const url = await serviceWith('express', takeAWhile)
  const { states, json } = await examine('--leaf', String(await freePort()), url)
  expect(states).toMatchObject({ 'passes-on': 'unseen', stops: 'unseen' })
  expect(seen(json, 'passes-on')).toContain('did not reach the leaf')
})

test('a leaf passes calls on to the real upstream, and what it answers back', async () => {
  const asked: (string | undefined)[] = []
  const upstream = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(200, { 'x-kind': 'real' }).end('{"real":true}')
  })
  const port = await freePort()
  const url = await serviceWith('express', async () => {
    const answer = await fetchUnderDeadline(`http://127.0.0.1:${port}/index?q=1`, {
      method: 'POST',
      body: 'b',
    })
    if (answer.headers.get('x-kind') !== 'real' || !(await answer.text()).includes('real'))
      throw new Error('not passed on')
    return {}
  })
  const { states } = await examine('--leaf', String(port), '--upstream', upstream, url)
  expect(states).toEqual(allHold)
  expect(asked).toContain('POST /index?q=1')
})

test('a service that reads one header of the pair alone is told so', async () => {
  const url = await serviceWith('koa', takeAWhile, { accept: ['x-request-timeout-ms'] })
  const { exitCode, states, json } = await examine(url)
  expect(states).toMatchObject({ reads: 'fails', 'in-time': 'holds' })
  expect(json.checks[0]?.advice?.say).toContain('one header of the pair')
  expect(exitCode).toBe(1)
})

test('a service that lets late answers through fails to answer in time', async () => {
  const url = await serve((request, response) => {
    // an expired deadline is refused, and any other forgotten
    const left = request.headers['x-request-timeout-ms']
    const isOver = left === '0' || Number(request.headers['x-request-deadline']) < Date.now() - 1000
    if (isOver) response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end()
    else setTimeout(() => response.end(), 200)
  })
  const { exitCode, states } = await examine(url)
  expect(states).toMatchObject({ reads: 'holds', 'in-time': 'fails' })
  expect(exitCode).toBe(1)
})

test('an operation that gives up before the deadline, for its reserve, has said why as well', async () => {
  const url = await serviceWith('express', (signal) =>
    operation('generate', { reserve: '150ms' }, () => wait(800, {}, { signal })),
  )
  const { exitCode, states, json } = await examine(url)
  expect(states).toMatchObject({ reads: 'holds', 'in-time': 'holds' })
  expect(seen(json, 'in-time')).toMatch(/^504 operation_timeout after/)
  expect(exitCode).toBe(0)
})

test('a stream that the deadline ends by an error event has ended in time', async () => {
  const url = await serve(
    withDeadline(async (_request, response) => {
      const stream = sse(response)
      for (let token = 0; token < 10; token += 1) {
        await stream.token('more')
        await wait(60)
      }
      await stream.done()
    }),
  )
  const { states, json } = await examine(url)
  expect(states).toMatchObject({ reads: 'holds', 'in-time': 'holds' })
  expect(seen(json, 'in-time')).toMatch(/^200 with an error event at its end after/)
})

test('a 504 that does not say why is no answer for its callers', async () => {
  const service = await serviceWith('express', takeAWhile)
  const proxy = await serve((incoming, response) => {
    const { url = '/', headers } = incoming
    httpRequest(new URL(url, service), { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502)
      answer.resume().on('end', () => response.end())
    }).end()
  })
  const { states, json } = await examine(proxy)
  expect(states).toMatchObject({ reads: 'fails', 'in-time': 'fails' })
  expect(json.checks[0]?.advice?.say).toContain('does not say why')
})

describe('a service with a deadline of its own making', () => {
  type Reading = (header: string | undefined) => number | undefined

  /** Answers 504 after as many milliseconds as `read` makes of the header. */
  function handMade(read: Reading): Promise<string> {
    return serve((request, response) => {
      const header = request.headers['x-request-timeout-ms']
      const epoch = Number(request.headers['x-request-deadline'] ?? Date.now() + 60_000)
      const left = read(header === undefined ? String(epoch - Date.now()) : String(header))
      const expire = (): void => {
        if (!response.headersSent)
          response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end()
      }
      const done = setTimeout(() => response.headersSent || response.end(), 150)
      const timer = left === undefined ? undefined : setTimeout(expire, left)
      response.on('close', () => {
        clearTimeout(done)
        clearTimeout(timer)
      })
    })
  }

  test('that takes what it cannot read for expired fails', async () => {
    const { states, json } = await examine(
      await handMade((header) => Math.max(0, Math.min(60_000, Number(header) || 0))),
    )
    expect(states).toMatchObject({ reads: 'holds', malformed: 'fails' })
    expect(seen(json, 'malformed')).toContain('x-request-timeout-ms: soon gets 504 deadline_exceeded')
  })

  test('whose timers break on a deadline far away fails', async () => {
    // as setTimeout does it, which warns of it as well
    const inTimer = (ms: number): number => (ms > 2_147_483_647 ? 1 : ms)
    const { states, json } = await examine(
      await handMade((header) => (/^-?\d+$/.test(header ?? '') ? inTimer(Number(header)) : undefined)),
    )
    expect(states).toMatchObject({ reads: 'holds', 'never-extends': 'fails' })
    expect(seen(json, 'never-extends')).toContain('115 days away gets 504')
  })

  test('that takes the first of several deadlines fails', async () => {
    const { states, json } = await examine(
      await handMade((header) => {
        const first = (header ?? '').split(', ')[0] ?? ''
        return /^-?\d+$/.test(first) ? Math.max(0, Math.min(60_000, Number(first))) : undefined
      }),
    )
    expect(states).toMatchObject({ reads: 'holds', 'never-extends': 'fails' })
    expect(seen(json, 'never-extends')).toContain('took a later one: 200')
  })
})

test('a service that passes on whatever it was asked for has no maximum', async () => {
  const port = await freePort()
  const url = await serviceWith(
    'express',
    async () => ({ of: await (await fetchUnderDeadline(`http://127.0.0.1:${port}/`)).json() }),
    { max: '200d' },
  )
  const { states } = await examine('--leaf', String(port), url)
  expect(states).toEqual({ ...allHold, 'never-extends': 'fails' })
})

test.each([
  [5000, 'ahead of'],
  [-5000, 'behind'],
])('a clock that is %i ms off is found', async (off, words) => {
  const clock = { ...systemClock, epoch: () => systemClock.epoch() + off }
  const options: ServerOptions = { clock }
  const { states, json } = await examine(await serviceWith('fastify', takeAWhile, options))
  expect(states).toMatchObject({ reads: 'holds', clocks: 'fails' })
  expect(seen(json, 'clocks')).toMatch(new RegExp(`^its clock is (4\\.9\\d?|5(\\.0\\d?)?) s ${words}`))
})

test('without a service there is nothing to examine', async () => {
  const { exitCode, printed, complained } = await startBin(['doctor', `127.0.0.1:${await freePort()}`])
    .finished
  expect({ exitCode, printed }).toEqual({ exitCode: 7, printed: '' })
  expect(complained).toContain('nobody listens there')
})

test('a service that dies of the first request is no service', async () => {
  const server = createHttpServer((request) => {
    server.close()
    request.socket.destroy()
  })
  expect(await runCommand(['doctor', await listen(server)])).toMatchObject({ exitCode: 7, printed: '' })
})

test('a service that dies of a header does not pass', async () => {
  const url = await serve((request, response) => {
    const header = request.headers['x-request-timeout-ms']
    if (header === 'soon') request.socket.destroy()
    else if (header === '0' || 'x-request-deadline' in request.headers)
      response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end()
    else response.end()
  })
  const { exitCode, states, json } = await examine(url)
  expect(exitCode).toBe(1)
  expect(states['malformed']).toBe('fails')
  expect(seen(json, 'malformed')).toContain('gets no answer')
})

test('a service that never answers is waited for no longer than --patience', async () => {
  const url = await serve(() => {})
  const { exitCode, complained } = await runCommand(['doctor', '--patience', '200ms', url])
  expect(exitCode).toBe(7)
  expect(complained).toContain('no answer within 200 ms')
})

test('a port that is taken is a fault of the command', async () => {
  const url = await serve((_request, response) => response.end())
  const { exitCode, complained } = await runCommand(['doctor', '--leaf', new URL(url).port, url])
  expect(exitCode).toBe(1)
  expect(complained).toContain('--leaf: cannot listen on 127.0.0.1:')
})

test('Ctrl-C ends the examination in the midst of a check', async () => {
  const asked = deferred()
  const url = await serve((request, response) => {
    if (request.headers['x-request-timeout-ms'] === undefined) response.end()
    else asked.resolve()
  })
  const { child, finished } = startBin(['doctor', url])
  await asked.promise
  child.kill('SIGINT')
  expect(await finished).toMatchObject({ exitCode: 130, complained: '' })
})

test('the report fits the width, in ASCII alone where asked for', async () => {
  const url = await serve((_request, response) => void setTimeout(() => response.end('{}'), 60))
  const { printed } = await runCommand(['doctor', '--ascii', url], { COLUMNS: '40' })
  expect(printed).toMatch(/^[\n -~]+$/)
  expect(printed).toMatch(/^ {2}x reads the deadline$/m)
  // lines of code are left as they can be copied
  const prose = printed.split('\n').filter((line) => !line.startsWith('    ') && !line.includes('docs/'))
  for (const line of prose) expect(line.length).toBeLessThanOrEqual(40)
})
