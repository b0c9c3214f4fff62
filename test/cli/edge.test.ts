import { setTimeout as wait } from 'node:timers/promises'
import { fetch as fetchUnderDeadline } from '@timebudget/clients/fetch'
import { operation } from '@timebudget/core'
import { describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { runCommand } from './run-command.ts'
import { frameworkNames, serve, serviceWith } from './services.ts'

/** What `--json` prints, as far as these tests look at it. */
interface DoctorJson {
  readonly checks: readonly {
    readonly name: string
    readonly state: 'holds' | 'fails' | 'unseen'
    readonly seen: string
    readonly advice: { readonly say: string } | null
  }[]
}

async function examine(...args: string[]): Promise<{
  readonly exitCode: number | null
  readonly states: Readonly<Record<string, string>>
  readonly seen: Readonly<Record<string, string>>
  readonly advice: string
}> {
  const { exitCode, printed, complained } = await runCommand(['doctor', '--json', ...args])
  expect(complained).toBe('')
  const { checks }: DoctorJson = JSON.parse(printed)
  return {
    exitCode,
    states: Object.fromEntries(checks.map(({ name, state }) => [name, state])),
    seen: Object.fromEntries(checks.map(({ name, seen }) => [name, seen])),
    advice: checks.map(({ advice }) => advice?.say ?? '').join(' '),
  }
}

/** Nothing that depends on a deadline being read is judged. */
const unjudged = {
  reads: 'unseen',
  malformed: 'unseen',
  'never-extends': 'unseen',
  'passes-on': 'unseen',
  clocks: 'unseen',
  'in-time': 'unseen',
  stops: 'unseen',
}

describe.each(frameworkNames)('a public edge on %s, which ignores deadlines on purpose', (framework) => {
  test('is not blamed for it where its own deadline answers 504', async () => {
    const url = await serviceWith(framework, (signal) => wait(30_000, {}, { signal }), {
      trust: 'ignore',
      default: '300ms',
    })
    const { exitCode, states, seen, advice } = await examine(url)
    expect(states).toMatchObject({ ...unjudged, clocks: expect.any(String) })
    expect(exitCode).toBe(0)
    expect(seen['reads']).toMatch(/changes nothing: 504 deadline_exceeded after .* as without one/)
    expect(seen['never-extends']).toContain('not judged')
    expect(advice).toContain("trust: 'ignore'")
    expect(advice).toContain('behind it')
  })
})

test('an edge that tells of its operations, or gives a leaf a deadline of its own, is known for one', async () => {
  const telling = await serviceWith(
    'express',
    (signal) => operation('search', {}, () => wait(60, {}, { signal })),
    { trust: 'ignore', serverTiming: true },
  )
  expect(await examine(telling)).toMatchObject({ exitCode: 0, states: unjudgedBut({ clocks: 'holds' }) })

  const port = await freePort()
  const calling = await serviceWith(
    'express',
    async () => ({ of: await (await fetchUnderDeadline(`http://127.0.0.1:${port}/`)).json() }),
    { trust: 'ignore', default: '20s' },
  )
  const { exitCode, states, seen } = await examine('--leaf', String(port), calling)
  expect(states).toEqual(unjudgedBut({ clocks: 'holds', 'passes-on': 'holds', stops: 'holds' }))
  expect(seen['passes-on']).toMatch(/^the leaf was told of (1\d{4}|20000) ms, which are its own/)
  expect(exitCode).toBe(0)
})

function unjudgedBut(others: object): object {
  return { ...unjudged, ...others }
}

test('a service that is too slow for its own default, but refuses an expired deadline at once, reads it', async () => {
  const url = await serviceWith('koa', (signal) => wait(500, {}, { signal }), { default: '300ms' })
  const { exitCode, states } = await examine(url)
  expect(states).toMatchObject({
    reads: 'holds',
    malformed: 'holds',
    'never-extends': 'holds',
    'in-time': 'holds',
  })
  expect(exitCode).toBe(0)
})

test('a service that runs out of time at once, whatever it is sent, is not judged', async () => {
  const url = await serviceWith('koa', (signal) => wait(30_000, {}, { signal }), {
    default: '20ms',
    max: '1s',
  })
  const { states } = await examine(url)
  expect(states).toMatchObject({ reads: 'unseen', malformed: 'unseen', 'never-extends': 'unseen' })
})

test('a clock that is read through a slow answer is not judged', async () => {
  const url = await serve((_request, response) => {
    response.setHeader('date', new Date(Date.now()).toUTCString())
    setTimeout(() => response.end('{}'), 400)
  })
  const { states, seen } = await examine(url)
  expect(states['clocks']).toBe('unseen')
  expect(seen['clocks']).toMatch(/give or take .*too rough/)
})

test('probe names what lets an edge tell of its work', async () => {
  const work = (signal: AbortSignal): Promise<object> =>
    operation('search', {}, () => wait(20, {}, { signal }))
  const silent = await runCommand(['probe', await serviceWith('express', work, { trust: 'ignore' })])
  expect(silent.printed.replaceAll(/\s+/g, ' ')).toMatch(
    /no Server-Timing.*trust: 'ignore'.*serverTiming: true/,
  )
  const told = await runCommand([
    'probe',
    await serviceWith('express', work, { trust: 'ignore', serverTiming: true }),
  ])
  expect(told.printed).toMatch(/^ {4}search /m)
  expect(told.printed).not.toContain('Server-Timing')
})

test('a service that always runs out of time, and takes what it cannot read for expired, fails', async () => {
  const url = await serve((request, response) => {
    const { 'x-request-timeout-ms': relative, 'x-request-deadline': absolute } = request.headers
    const asked = relative === undefined ? Number(absolute ?? Infinity) - Date.now() : Number(relative) || 0
    const expire = (): void =>
      void response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end()
    setTimeout(expire, Math.max(0, Math.min(300, asked)))
  })
  const { states, seen } = await examine(url)
  expect(states).toMatchObject({ reads: 'holds', malformed: 'fails' })
  expect(seen['malformed']).toContain('x-request-timeout-ms: soon gets 504 deadline_exceeded')
})
