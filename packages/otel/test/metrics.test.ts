import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { metrics } from '@opentelemetry/api'
import {
  currentDeadline,
  Deadline,
  defineEvent,
  headerMalformed,
  operation,
  operationFinished,
  outcomes,
  requestFinished,
  requestStarted,
  skewMeasured,
  workLate,
} from '@timebudget/core'
import { type RequestListener, type ServerOptions, withDeadline } from '@timebudget/core/server'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { recordMetrics } from '../src/index.ts'
import { metricLabels, metricNames } from '../src/metric-names.ts'
import { metered } from './metered.ts'

const servers: Server[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})

async function serve(listener: RequestListener, options: ServerOptions = {}): Promise<number> {
  const server = createServer(withDeadline(listener, options)).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function ask(port: number, headers: Record<string, string> = {}): Promise<number | undefined> {
  const [response] = (await once(get({ port, host: '127.0.0.1', headers }), 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response.statusCode
}

/** A promise, and what resolves it. */
function gate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** The next event of a kind, told after all that listened before. */
function next<Payload>(channel: {
  subscribe(listener: (payload: Payload) => void): () => void
}): Promise<Payload> {
  return new Promise((resolve) => {
    const stop = channel.subscribe((payload) => {
      stop()
      resolve(payload)
    })
  })
}

describe('requests', () => {
  test('are there at 0, by every outcome, before there was any', async () => {
    await using recorded = metered()
    for (const outcome of outcomes)
      expect(await recorded.value('deadline.requests', { 'deadline.outcome': outcome })).toBe(0)
    expect(await recorded.value('deadline.request.active')).toBe(0)
    expect(await recorded.value('deadline.client.closed', { 'deadline.gone_by': 'client_fin' })).toBe(0)
    expect(
      await recorded.value('deadline.propagation.errors', { 'deadline.header': 'x-request-deadline' }),
    ).toBe(0)
    expect(await recorded.value('deadline.propagation.calls', { 'deadline.propagated': true })).toBe(0)
    expect(await recorded.value('deadline.work.wasted', { 'deadline.work.kind': 'request' })).toBe(0)
    expect(await recorded.value('deadline.llm.calls', { 'deadline.outcome': 'stream_stalled' })).toBe(0)
    expect(await recorded.value('deadline.llm.questions', { 'deadline.outcome': 'degraded' })).toBe(0)
  })

  test('are counted once by outcome, with what they were granted and the share they took', async () => {
    await using recorded = metered()
    let underWay: number | undefined
    const port = await serve(async (_request, response) => {
      underWay = await recorded.value('deadline.request.active')
      response.end('done')
    })
    const finished = next(requestFinished)
    expect(await ask(port, { 'x-request-timeout-ms': '2000' })).toBe(200)
    await finished
    expect(underWay).toBe(1)
    expect(await recorded.value('deadline.request.active')).toBe(0)
    expect(await recorded.value('deadline.requests', { 'deadline.outcome': 'ok' })).toBe(1)
    expect(
      await recorded.histogram('deadline.budget.limit', {
        'deadline.source': 'header',
        'deadline.clamped': false,
      }),
    ).toMatchObject({ count: 1, sum: 2 })
    const share = await recorded.histogram('deadline.budget.utilization', { 'deadline.outcome': 'ok' })
    expect(share?.count).toBe(1)
    expect(share?.sum).toBeLessThan(1)
    expect(await recorded.value('deadline.overrun.duration')).toBeUndefined()
  })

  test('that end late are told of in seconds, and their time is wasted', async () => {
    await using recorded = metered()
    const port = await serve(() => undefined, { default: 50 })
    const finished = next(requestFinished)
    expect(await ask(port)).toBe(504)
    await finished
    const outcome = { 'deadline.outcome': 'deadline_exceeded' }
    expect(await recorded.value('deadline.requests', outcome)).toBe(1)
    const overrun = await recorded.histogram('deadline.overrun.duration', outcome)
    expect(overrun?.count).toBe(1)
    expect(overrun?.sum).toBeLessThan(2)
    const kind = { 'deadline.work.kind': 'request' }
    const wasted = await recorded.value('deadline.work.wasted', kind)
    expect(wasted).toBeGreaterThan(0.045)
    expect(await recorded.value('deadline.work.duration', kind)).toBe(wasted)
  })

  test('whose client left are counted apart, and by how it left', async () => {
    await using recorded = metered()
    const entered = gate()
    const port = await serve(() => {
      entered.resolve()
      return operation('generate', {}, () => new Promise(() => undefined)).catch(() => undefined)
    })
    const finished = next(requestFinished)
    const leaving = httpRequest({ port, host: '127.0.0.1' }).on('error', () => undefined)
    leaving.end()
    await entered.promise
    leaving.destroy()
    await finished
    expect(await recorded.value('deadline.requests', { 'deadline.outcome': 'client_closed' })).toBe(1)
    const left = (await recorded.series('deadline.client.closed')) ?? []
    expect(left.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(1)
    const ended = { 'deadline.operation': 'generate', 'deadline.ended': 'operation' }
    const latency = await recorded.histogram('deadline.cancellation.duration', ended)
    expect(latency?.count).toBe(1)
    expect(latency?.sum).toBeLessThan(0.5)
  })

  test('that were under way when the recording began are not counted out of it', async () => {
    const request = {}
    const deadline = Deadline.after(1_000)
    const about = { deadline, source: 'default', clamped: false, request } as const
    requestStarted.publish(() => about)
    await using recorded = metered()
    requestFinished.publish(() => ({
      ...about,
      outcome: 'ok',
      status: 200,
      elapsed: 1,
      budget: 1_000,
      overrun: 0,
      goneBy: undefined,
    }))
    expect(await recorded.value('deadline.request.active')).toBe(0)
  })
})

describe('operations', () => {
  test('tell how long they took, how they ended, and what was left when they began', async () => {
    await using recorded = metered()
    await operation('rerank', { deadline: Deadline.after(1_000) }, () => 'done')
    const failed = operation('rerank', { deadline: Deadline.after(1_000), timeout: 20 }, () => {
      return new Promise(() => undefined)
    })
    await expect(failed).rejects.toThrow()
    const name = { 'deadline.operation': 'rerank' }
    expect(await recorded.value('deadline.operation.duration', { ...name, 'deadline.outcome': 'ok' })).toBe(1)
    const cut = await recorded.histogram('deadline.operation.duration', {
      ...name,
      'deadline.outcome': 'operation_timeout',
    })
    expect(cut?.sum).toBeGreaterThan(0.018)
    const left = await recorded.histogram('deadline.budget.remaining', name)
    expect(left?.count).toBe(2)
    expect(left?.sum).toBeGreaterThan(1.5)
    expect(left?.sum).toBeLessThanOrEqual(2)
  })

  test('without a limit give no infinite measurement', async () => {
    await using recorded = metered()
    await operation('unbounded', {}, () => 'done')
    expect(await recorded.value('deadline.operation.duration')).toBe(1)
    expect(await recorded.value('deadline.budget.remaining')).toBeUndefined()
  })

  test('whose work goes on after its client has left are told of once it has ended', async () => {
    await using recorded = metered()
    const entered = gate()
    const release = gate()
    const port = await serve(async () => {
      entered.resolve()
      await operation('outer', {}, () => operation('deaf', {}, () => release.promise)).catch(() => undefined)
    })
    const finished = next(requestFinished)
    const late = next(workLate)
    const leaving = httpRequest({ port, host: '127.0.0.1' }).on('error', () => undefined)
    leaving.end()
    await entered.promise
    leaving.destroy()
    await finished
    await new Promise((resolve) => setTimeout(resolve, 60))
    release.resolve()
    await late
    const work = await recorded.histogram('deadline.cancellation.duration', {
      'deadline.operation': 'deaf',
      'deadline.ended': 'work',
    })
    expect(work?.count).toBe(1)
    expect(work?.sum).toBeGreaterThan(0.05)
    const wasted = await recorded.value('deadline.work.wasted', { 'deadline.work.kind': 'operation' })
    expect(wasted).toBeGreaterThan(0.05)
    expect(
      (await recorded.histogram('deadline.work.late.duration', { 'deadline.work.kind': 'operation' }))?.sum,
    ).toBe(wasted)
  })

  test("measure from the client's leaving also where a route has a shorter deadline that began later", async () => {
    await using recorded = metered()
    const entered = gate()
    const route = withDeadline(
      () => {
        entered.resolve()
        const inner = (): Promise<unknown> => operation('inner', {}, () => new Promise(() => undefined))
        return operation('generate', { timeout: '3.6s' }, inner).catch(() => undefined)
      },
      { default: '4s' },
    )
    const port = await serve(async (request, response) => {
      await new Promise((resolve) => setTimeout(resolve, 400))
      await route(request, response)
    })
    const finished = next(requestFinished)
    const leaving = httpRequest({ port, host: '127.0.0.1' }).on('error', () => undefined)
    leaving.end()
    await entered.promise
    leaving.destroy()
    await finished
    // of what stands under a shorter deadline still nothing is known
    const series = (await recorded.series('deadline.cancellation.duration')) ?? []
    expect(series.map(([attributes]) => attributes['deadline.operation'])).toEqual(['generate'])
    const latency = await recorded.histogram('deadline.cancellation.duration')
    expect(latency?.count).toBe(1)
    expect(latency?.sum).toBeLessThan(0.3)
  })
})

describe('what comes over the wire', () => {
  test('is counted by header, if it cannot be read', async () => {
    await using recorded = metered()
    const port = await serve((_request, response) => response.end())
    await ask(port, { 'x-request-timeout-ms': 'soon' })
    expect(
      await recorded.value('deadline.propagation.errors', { 'deadline.header': 'x-request-timeout-ms' }),
    ).toBe(1)
  })

  test("gives a peer's skew with its sign, in seconds", async () => {
    await using recorded = metered()
    const port = await serve((_request, response) => response.end())
    const headers = {
      'x-request-deadline': String(Date.now() + 65_000),
      'x-request-timeout-ms': '5000',
    }
    await ask(port, headers)
    const skew = await recorded.value('deadline.peer.skew', { 'deadline.peer': '127.0.0.1' })
    expect(skew).toBeLessThan(-58)
    expect(skew).toBeGreaterThan(-61)
  })

  test('takes what a message waited for no skew: the shortest transit lately seen counts', async () => {
    await using recorded = metered()
    for (const skew of [900, 3, 400, 1_500])
      skewMeasured.publish(() => ({ peer: '10.0.0.9', skew, worthWarning: false }))
    expect(await recorded.value('deadline.peer.skew', { 'deadline.peer': '10.0.0.9' })).toBe(0.003)
  })

  test('forgets a peer that has fallen silent, and keeps the worst of those that share a name', async () => {
    await using recorded = metered({ maxNames: 1 })
    const tell = (peer: string, skew: number): void =>
      skewMeasured.publish(() => ({ peer, skew, worthWarning: false }))
    tell('10.0.0.1', 10)
    tell('10.0.0.2', -500)
    tell('10.0.0.3', 30)
    expect(await recorded.value('deadline.peer.skew', { 'deadline.peer': '10.0.0.1' })).toBe(0.01)
    expect(await recorded.value('deadline.peer.skew', { 'deadline.peer': 'other' })).toBe(-0.5)
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now + 121_000)
    tell('10.0.0.3', 30)
    expect(await recorded.value('deadline.peer.skew', { 'deadline.peer': '10.0.0.1' })).toBe(0)
    expect(await recorded.value('deadline.peer.skew', { 'deadline.peer': 'other' })).toBe(0.03)
  })
})

describe('recordMetrics', () => {
  test('takes nothing that is negative or no finite number', async () => {
    await using recorded = metered()
    const request = {}
    const deadline = Deadline.after(0)
    for (const elapsed of [-1, Number.NaN, Infinity]) {
      requestFinished.publish(() => ({
        deadline,
        source: 'default',
        clamped: false,
        request,
        outcome: 'deadline_exceeded',
        status: 504,
        elapsed,
        budget: 0,
        overrun: Infinity,
        goneBy: undefined,
      }))
      workLate.publish(() => ({ kind: 'answer', operation: undefined, deadline, lateBy: elapsed }))
      skewMeasured.publish(() => ({ peer: 'p', skew: Number.NaN, worthWarning: false }))
    }
    expect(await recorded.value('deadline.requests', { 'deadline.outcome': 'deadline_exceeded' })).toBe(3)
    for (const name of ['utilization', 'overrun.duration', 'work.late.duration', 'peer.skew'])
      expect(await recorded.series(`deadline.${name.replace('utilization', 'budget.utilization')}`)).toBe(
        undefined,
      )
    for (const kind of ['request', 'answer'])
      expect(await recorded.value('deadline.work.wasted', { 'deadline.work.kind': kind })).toBe(0)
  })

  test('tells so many names of a kind apart, and calls all others `other`, long ones at once', async () => {
    await using recorded = metered({ maxNames: 2 })
    for (const name of ['x'.repeat(129), 'a', 'b', 'c', 'd', 'a']) await operation(name, {}, () => undefined)
    const names = ((await recorded.series('deadline.operation.duration')) ?? []).map(
      ([attributes, recordedOf]) => [
        attributes['deadline.operation'],
        (recordedOf as { count: number }).count,
      ],
    )
    expect(Object.fromEntries(names)).toEqual({ a: 2, b: 1, other: 3 })
  })

  test('has room for 50 names of a kind by default', async () => {
    await using recorded = metered()
    for (let index = 0; index < 200; index += 1)
      headerMalformed.publish(() => ({ header: `x-${index}`, value: '', peer: undefined }))
    const series = (await recorded.series('deadline.propagation.errors')) ?? []
    expect(series).toHaveLength(51)
  })

  test('gives its histograms boundaries that fit what they measure', async () => {
    await using recorded = metered()
    const port = await serve(() => undefined, { default: 20 })
    await ask(port)
    await operation('any', { timeout: '1s' }, () => undefined)
    // http.server.request.duration's, and on to the longest budget
    const requestLike = [
      0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300,
    ]
    expect((await recorded.histogram('deadline.budget.limit'))?.boundaries).toEqual(requestLike)
    expect((await recorded.histogram('deadline.operation.duration'))?.boundaries).toEqual(requestLike)
    expect((await recorded.histogram('deadline.budget.utilization'))?.boundaries).toContain(1)
    expect((await recorded.histogram('deadline.overrun.duration'))?.boundaries[0]).toBe(0.001)
  })

  test('leaves nothing behind when it is stopped: no listener, and nothing under way', async () => {
    await using recorded = metered()
    const deadline = Deadline.after(1_000)
    requestStarted.publish(() => ({ deadline, source: 'default', clamped: false, request: {} }))
    expect(await recorded.value('deadline.request.active')).toBe(1)
    recorded.stop()
    recorded.stop()
    expect(await recorded.value('deadline.request.active')).toBe(0)
    for (const channel of [requestStarted, requestFinished, operationFinished, workLate, skewMeasured])
      expect([channel.name, channel.observed]).toEqual([channel.name, false])
    expect(defineEvent('timebudget:llm.call.finished').observed).toBe(false)
  })

  test('asks nothing any more once it is stopped', () => {
    const asked = new Set<unknown>()
    const { meter, ...recorded } = metered()
    recorded.stop()
    const watched = new Proxy(meter, {
      get: (target, name) =>
        name === 'createObservableGauge'
          ? () => ({
              addCallback: (callback: unknown) => asked.add(callback),
              removeCallback: (callback: unknown) => asked.delete(callback),
            })
          : Reflect.get(target, name, target).bind(target),
    })
    const stop = recordMetrics(watched)
    expect(asked.size).toBe(1)
    stop()
    expect(asked.size).toBe(0)
  })

  test('is documented, metric by metric and attribute by attribute', () => {
    const docs = readFileSync(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8')
    const ours = [...Object.values(metricNames), ...Object.values(metricLabels)]
    for (const name of ours) expect(docs).toContain(`\`${name.slice('deadline.'.length)}\``)
  })

  test('hurts nobody when an instrument fails, and says so once', async () => {
    const warnings: string[] = []
    const hear = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', hear)
    const { meter, ...recorded } = metered()
    recorded.stop()
    const broken = new Proxy(meter, {
      get: (target, name) =>
        name === 'createHistogram'
          ? () => ({
              record() {
                throw new Error('the exporter is full')
              },
            })
          : Reflect.get(target, name, target).bind(target),
    })
    const stop = recordMetrics(broken)
    for (let call = 0; call < 3; call += 1)
      expect(await operation('goes on', { timeout: '1s' }, () => 'well')).toBe('well')
    stop()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', hear)
    expect(warnings.filter((message) => message.includes('the exporter is full'))).toHaveLength(1)
  })

  test('records into nothing where no SDK is there', async () => {
    const stop = recordMetrics(metrics.getMeter('timebudget'))
    expect(await operation('works', {}, () => currentDeadline() !== undefined)).toBe(true)
    stop()
  })

  test.each([
    [{ maxName: 2 }, /maxName: no such option/],
    [{ maxNames: 0 }, /maxNames: expected a whole number of at least 1/],
    [{ maxNames: 1.5 }, /maxNames/],
    [{ genAi: 'v2' }, /genAi: expected 'v0.1', 'v1.41' or false, got v2/],
  ])('names the option that cannot be read: %j', (options, message) => {
    expect(() => recordMetrics(metrics.getMeter('timebudget'), options as object)).toThrow(message)
  })
})
