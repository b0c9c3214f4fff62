import {
  breakerMoved,
  floorJudged,
  headerMalformed,
  loopLagged,
  operationFinished,
  queueJudged,
  retryDecided,
  skewMeasured,
  UpstreamError,
  workLate,
} from '@timebudget/core'
import { expect, test } from 'vitest'
import { everything, observe, ToldRequest } from './support/observed.ts'

test('a request is listed with its operations while it runs, and keeps them when it has ended', () => {
  const observatory = observe()
  const told = new ToldRequest({ method: 'POST', url: '/chat' }, 3_000)
  const retrieve = told.start('retrieve', { timeout: 500, floor: 50, reserve: 200 })
  const [running] = everything(observatory).requests
  expect(running).toMatchObject({
    method: 'POST',
    path: '/chat',
    outcome: null,
    elapsed: null,
    budget: 3_000,
  })
  expect(running?.entries).toMatchObject([
    {
      name: 'retrieve',
      depth: 0,
      granted: 500,
      floor: 50,
      reserve: 200,
      spent: null,
      outcome: null,
      peer: false,
    },
  ])
  retrieve.end()
  told.finish('degraded', 203)
  const [finished] = everything(observatory).requests
  expect(finished).toMatchObject({ id: running?.id, outcome: 'degraded', status: 203, deadlineAt: 3_000 })
  expect(finished?.entries).toMatchObject([{ name: 'retrieve', outcome: 'ok', spent: expect.any(Number) }])
})

test('a request that a fallback has answered is degraded, in its row and in the counts', () => {
  const observatory = observe()
  const told = new ToldRequest()
  told.start('answer').end('degraded')
  told.finish('ok')
  const late = new ToldRequest()
  late.start('answer').end('degraded')
  late.finish('deadline_exceeded', 504)
  const { requests, counts } = everything(observatory)
  expect(requests.map(({ outcome }) => outcome)).toEqual(['deadline_exceeded', 'degraded'])
  expect(counts.outcomes).toEqual([
    { outcome: 'degraded', count: 1 },
    { outcome: 'deadline_exceeded', count: 1 },
  ])
})

test('operations stand after what they are part of, also where names have dots in them or parts are missing', () => {
  const observatory = observe()
  const told = new ToldRequest()
  const outer = told.start('db.query')
  const inner = told.start('parse.row', { deadline: outer.deadline })
  const next = told.start('next')
  told.deadline.ledger.addPeer(outer.entry, [
    { path: 'plan', start: 1, spent: 2, outcome: 'ok' },
    { path: 'gone.scan', start: 2, spent: 3, outcome: 'ok' },
  ])
  for (const operation of [inner, outer, next]) operation.end()
  told.finish()
  const [request] = everything(observatory).requests
  expect(request?.entries.map(({ name, depth, peer }) => ({ name, depth, peer })).slice(0, 1)).toEqual([
    { name: 'db.query', depth: 0, peer: false },
  ])
  const parts = request?.entries.slice(1, 4).map(({ name, depth, peer }) => [name, depth, peer])
  expect(parts).toEqual(
    expect.arrayContaining([
      ['parse.row', 1, false],
      ['plan', 1, true],
      ['scan', 1, true],
    ]),
  )
  expect(request?.entries.at(-1)).toMatchObject({ name: 'next', depth: 0 })
})

test('what a peer was granted is not made up', () => {
  const observatory = observe()
  const told = new ToldRequest()
  const call = told.start('fetch', { timeout: 700 })
  told.deadline.ledger.addPeer(call.entry, [{ path: 'scan', start: 0, spent: 3, outcome: 'ok' }])
  call.end()
  told.finish()
  const [request] = everything(observatory).requests
  expect(request?.entries).toMatchObject([{ granted: 700 }, { name: 'scan', peer: true, granted: null }])
})

test('work that ends after its request was answered still comes to its end', () => {
  const observatory = observe()
  const told = new ToldRequest()
  const audit = told.start('audit')
  told.finish()
  expect(everything(observatory).requests[0]?.entries).toMatchObject([{ name: 'audit', outcome: null }])
  audit.end()
  expect(everything(observatory).requests[0]?.entries).toMatchObject([{ name: 'audit', outcome: 'ok' }])
})

test('only so many requests are kept, and the running ones beyond that are counted', () => {
  const observatory = observe(10)
  const running = Array.from({ length: 25 }, () => new ToldRequest())
  expect(everything(observatory).counts).toMatchObject({ running: 25, unlisted: 15 })
  expect(everything(observatory).kept).toHaveLength(10)
  for (const told of running) told.finish()
  const { counts, kept, requests } = everything(observatory)
  expect(counts).toMatchObject({
    running: 0,
    unlisted: 0,
    finished: 25,
    outcomes: [{ outcome: 'ok', count: 25 }],
  })
  expect(kept).toHaveLength(10)
  expect(new Set(requests.map(({ outcome }) => outcome))).toEqual(new Set(['ok']))
})

test('of a request with a thousand operations 128 are shown, and the others counted', () => {
  const observatory = observe()
  const told = new ToldRequest()
  for (let index = 0; index < 1_500; index += 1) told.start(`step ${index}`).end()
  told.finish()
  const [request] = everything(observatory).requests
  expect(request?.entries).toHaveLength(128)
  expect(request?.dropped).toBe(1_500 - 128)
})

test('a hundred thousand requests leave no more behind than a few hundred do', { timeout: 120_000 }, () => {
  const observatory = observe(200)
  const turn = (index: number): void => {
    const told = new ToldRequest({ method: 'GET', url: `/item/${index}?token=${index}` })
    told.start(`lookup ${index}`, { timeout: 50_000 }).end()
    told.finish()
    skewMeasured.publish(() => ({ peer: `10.${index}`, skew: index % 50, worthWarning: false }))
    if (index % 1_000 === 0) observatory.snapshot()
  }
  const heap = (): number => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  for (let index = 0; index < 10_000; index += 1) turn(index)
  const before = heap()
  for (let index = 10_000; index < 110_000; index += 1) turn(index)
  expect(heap() - before).toBeLessThan(2_000_000)
  const { operations, service, counts } = everything(observatory)
  expect(counts.finished).toBe(110_000)
  expect(operations).toHaveLength(200)
  expect(service.skews).toHaveLength(100)
})

test('long names are cut, and nothing keeps the whole of them', () => {
  const observatory = observe(50)
  const heap = (): number => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  const before = heap()
  for (let index = 0; index < 300; index += 1) {
    const told = new ToldRequest({ method: 'GET', url: `/${index}/${'p'.repeat(100_000)}` })
    told.start(`${index}${'n'.repeat(100_000)}`).end()
    told.finish()
  }
  expect(heap() - before).toBeLessThan(3_000_000)
  const { requests, operations } = everything(observatory)
  expect(requests[0]?.path).toHaveLength(200)
  expect(requests[0]?.entries[0]?.name).toHaveLength(96)
  expect(operations[0]?.name).toHaveLength(96)
})

test('hostile names stay names: of prototypes, with control characters, with text that turns around', () => {
  const observatory = observe()
  const told = new ToldRequest({ method: 'GET\r\n', url: '/a\u001b[31m' })
  for (const name of ['__proto__', 'constructor', 'a\u0000b', 'safe\u202egnp.exe', '']) told.start(name).end()
  told.finish()
  const { requests, operations } = everything(observatory)
  const names = ['__proto__', 'constructor', 'a\ufffdb', 'safe\ufffdgnp.exe', '']
  expect(requests[0]).toMatchObject({ method: 'GET\ufffd\ufffd', path: '/a\ufffd[31m' })
  expect(requests[0]?.entries.map(({ name }) => name)).toEqual(names)
  expect(operations.map(({ name }) => name).sort()).toEqual([...names].sort())
  expect(operations.every(({ count }) => count === 1)).toBe(true)
})

test('quantiles are of what was begun: refusals take no time', () => {
  const observatory = observe()
  const told = new ToldRequest()
  const end = (spent: number, outcome: 'ok' | 'short_circuited'): void => {
    const { deadline, entry } = told.start('generate', { floor: 250 })
    operationFinished.publish(() => ({ deadline, entry: { ...entry, spent, outcome }, error: undefined }))
  }
  for (let spent = 1; spent <= 100; spent += 1) end(spent, 'ok')
  for (let index = 0; index < 100; index += 1) end(0, 'short_circuited')
  expect(everything(observatory).operations).toMatchObject([
    {
      name: 'generate',
      count: 200,
      p50: 50,
      p95: 95,
      floor: 250,
      outcomes: [
        { outcome: 'ok', count: 100 },
        { outcome: 'short_circuited', count: 100 },
      ],
    },
  ])
})

test('operations of peers are counted apart, and drive none of ours out', () => {
  const observatory = observe()
  const told = new ToldRequest()
  const call = told.start('fetch')
  const reports = Array.from({ length: 900 }, (_, index) => ({
    path: `invented-${index}`,
    start: 0,
    spent: 1,
    outcome: 'ok' as const,
  }))
  told.deadline.ledger.addPeer(call.entry, reports)
  call.end()
  told.finish()
  const { operations } = everything(observatory)
  expect(operations.filter(({ peer }) => peer)).toHaveLength(200)
  expect(operations.filter(({ peer }) => !peer)).toMatchObject([{ name: 'fetch', count: 1 }])
})

test('a failure is told by its code; messages, queries and headers are nowhere', () => {
  const observatory = observe()
  const told = new ToldRequest({
    method: 'GET',
    url: '/chat?key=secret-query',
    headers: { authorization: 'secret-header' },
  })
  const failures = [
    new UpstreamError('secret-message', {}),
    Object.assign(new Error('secret-message'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('secret-message'), { code: 'secret code: token' }),
    'secret-text',
  ]
  for (const [index, failure] of failures.entries()) told.start(`call ${index}`).fail(failure)
  told.finish('error', 500)
  headerMalformed.publish(() => ({ header: 'x-request-deadline', value: 'secret-value', peer: '10.0.0.1' }))
  const snapshot = everything(observatory)
  expect(snapshot.requests[0]?.entries.map(({ code }) => code)).toEqual([
    'UPSTREAM_ERROR',
    'ECONNREFUSED',
    null,
    null,
  ])
  expect(snapshot.service.malformed).toEqual([{ header: 'x-request-deadline', count: 1 }])
  expect(JSON.stringify(snapshot)).not.toContain('secret')
})

test('the page is told only what has changed, and all of it after a restart', () => {
  const observatory = observe()
  const [first, second] = [new ToldRequest(), new ToldRequest()]
  const all = observatory.snapshot()
  expect(all).toMatchObject({ more: false, kept: [1, 2], requests: [{ id: 2 }, { id: 1 }] })
  const again = observatory.snapshot({ place: all.place })
  expect(again.requests).toEqual([])
  first.start('work')
  const grown = observatory.snapshot({ place: again.place })
  expect(grown.requests).toMatchObject([{ id: 1, bars: [[expect.any(Number), null, 0, null]] }])
  second.finish()
  const ended = observatory.snapshot({ place: grown.place })
  expect(ended.requests).toMatchObject([{ id: 2, outcome: 'ok' }])
  const elsewhere = ended.place.replace(/^[^.]+/, 'another')
  expect(observatory.snapshot({ place: elsewhere }).requests).toHaveLength(2)
})

test('an answer to the page holds 200 requests, and each has its turn although all change all the time', () => {
  const observatory = observe()
  const running = Array.from({ length: 450 }, () => new ToldRequest())
  const ids = new Set<number>()
  const more: boolean[] = []
  let place: string | undefined
  for (let turn = 0; turn < 3; turn += 1) {
    for (const told of running) told.start('step').end()
    const part = observatory.snapshot(place === undefined ? {} : { place })
    expect(part.requests.length).toBeLessThanOrEqual(200)
    for (const { id } of part.requests) ids.add(id)
    place = part.place
    more.push(part.more)
  }
  expect(more).toEqual([true, true, false])
  expect(ids.size).toBe(450)
  // what has changed during a sweep is the next one's
  expect(observatory.snapshot({ place: place ?? '' }).requests).toHaveLength(200)
})

test.each(['', '.', 'x.1.2.3', '@.-1.NaN.1e9', '@.9999999999999999.0.0', '@', '@.1', '@.0.0.0.0.0'])(
  'a place that nobody gave, such as %j, is the beginning or finds nothing, and throws nothing',
  (place) => {
    const observatory = observe()
    new ToldRequest().finish()
    const { session } = observatory.snapshot()
    const { requests } = observatory.snapshot({ place: place.replace('@', session), request: -1 })
    expect(requests.length).toBeLessThanOrEqual(1)
  },
)

test('a row of the list has 24 bars at most, however much a request does', () => {
  const observatory = observe()
  const told = new ToldRequest()
  for (let index = 0; index < 60; index += 1) told.start('step').end()
  expect(observatory.snapshot().requests[0]?.bars).toHaveLength(24)
  told.finish()
  expect(observatory.snapshot().requests[0]?.bars).toHaveLength(24)
})

test('a hidden request is as if it had not been, also where it was not listed', () => {
  const observatory = observe(1)
  const [listed, unlisted] = [new ToldRequest(), new ToldRequest()]
  observatory.hide(listed.request)
  observatory.hide(unlisted.request)
  expect(everything(observatory)).toMatchObject({ kept: [], counts: { running: 0, unlisted: 0 } })
  listed.finish()
  unlisted.finish()
  expect(everything(observatory)).toMatchObject({ kept: [], counts: { finished: 0 } })
})

test('learned floors, retries and late work stand with their operation', () => {
  const observatory = observe()
  const told = new ToldRequest()
  told.start('generate').end()
  floorJudged.publish(() => ({
    operation: 'generate',
    remaining: 200,
    floor: 412.34,
    chance: 0.04,
    decision: 'refused',
  }))
  const retry = { operation: 'generate', deadline: undefined, attempt: 1, delay: 5, error: undefined }
  retryDecided.publish(() => ({ ...retry, stop: undefined }))
  retryDecided.publish(() => ({ ...retry, stop: 'no_time' }))
  const { deadline } = told.start('generate')
  workLate.publish(() => ({ kind: 'operation', operation: 'outer.generate', deadline, lateBy: 3 }))
  expect(everything(observatory).operations).toMatchObject([
    { name: 'generate', learned: { floor: 412.3, chance: 0.04, decision: 'refused' }, retries: 1, late: 1 },
  ])
})

test('clock skew is kept per peer; breakers, queues and the loop as they last were', () => {
  const observatory = observe()
  for (const skew of [12, -3, 25.55])
    skewMeasured.publish(() => ({ peer: '10.0.0.7', skew, worthWarning: false }))
  breakerMoved.publish(() => ({ breaker: 'vectors', from: 'closed', to: 'open' }))
  breakerMoved.publish(() => ({ breaker: 'vectors', from: 'open', to: 'half_open' }))
  const queue = { queue: 'gpu', deadline: undefined, predicted: 0, running: 4 }
  queueJudged.publish(() => ({ ...queue, decision: 'admitted', waited: 30, waiting: 2 }))
  queueJudged.publish(() => ({ ...queue, decision: 'shed', waited: 0, waiting: 3 }))
  for (const lag of [80, 20]) loopLagged.publish(() => ({ lag }))
  expect(everything(observatory).service).toMatchObject({
    skews: [{ peer: '10.0.0.7', count: 3, last: 25.6, least: -3, most: 25.6 }],
    breakers: [{ name: 'vectors', state: 'half_open', opened: 1 }],
    queues: [
      { name: 'gpu', waiting: 3, running: 4, admitted: 1, shed: 1, left: 0, waited: 0, waitedMost: 30 },
    ],
    lag: { last: 20, most: 80 },
  })
})

test('after closing nothing is listened to', () => {
  const observatory = observe()
  observatory.close()
  new ToldRequest().finish()
  expect(everything(observatory)).toMatchObject({ kept: [], counts: { finished: 0 } })
})
