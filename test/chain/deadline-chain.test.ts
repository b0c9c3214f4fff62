import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { Chain, threeFrameworks } from './chain.ts'

test('a last hop that never answers: the client has its 504 in time, every hop has aborted alike, the upstream is closed', async () => {
  await using upstream = await slowUpstream()
  using chain = await threeFrameworks(upstream.url)
  const began = performance.now()
  const response = await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '400' } })
  expect(performance.now() - began).toBeLessThan(2_000)
  expect(response.status).toBe(504)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('x-deadline-outcome')).toBe('deadline_exceeded')
  expect(await response.json()).toMatchObject({ code: 'DEADLINE_EXCEEDED', status: 504, budget: 400 })
  for (const hop of chain.hops) {
    expect(await hop.report('aborted')).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      outcome: 'deadline_exceeded',
    })
    expect(await hop.report('finished')).toMatchObject({ outcome: 'deadline_exceeded' })
    expect(hop.all('finished')).toHaveLength(1)
    expect(hop.all('crashed')).toEqual([])
  }
  expect(await (await upstream.nextRequest()).abandoned).toBe(true)
})

test('every hop sends on the absolute deadline it received, with less left each time', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  // a first request on a busy machine may be under way for longer than clocks are usually off
  const options = { skewTolerance: '2s' }
  using chain = await threeFrameworks(upstream.url, { options }, { options })
  const absolute = String(Date.now() + 3000)
  const response = await fetch(chain.entry.url, {
    headers: { 'x-request-deadline': absolute, 'x-request-timeout-ms': '3000' },
  })
  expect(response.status).toBe(200)
  const { headers } = await upstream.nextRequest()
  expect(headers['x-request-deadline']).toBe(absolute)
  let before = 3000
  for (const hop of chain.hops) {
    const entered = await hop.report('entered')
    const left = Number((entered['headers'] as Record<string, string>)['x-request-timeout-ms'])
    expect(left).toBeLessThanOrEqual(before)
    before = left
  }
  expect(Number(headers['x-request-timeout-ms'])).toBeLessThanOrEqual(before)
})

test('the entry sees the whole chain in its Server-Timing', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  using chain = await threeFrameworks(upstream.url)
  const response = await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '3000' } })
  const names = response.headers
    .get('server-timing')
    ?.split(', ')
    .map((entry) => entry.split(';')[0])
  expect(names).toContain('next')
  expect(names).toContain('next.fetch')
  expect(names).toContain('next.fetch.next.fetch')
  expect(names).toContain('next.fetch.next.fetch.next.fetch')
})

test('a middle hop with a longer default never lengthens what it was given', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  using chain = await threeFrameworks(upstream.url, {}, { options: { default: '15s' } })
  await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '2000' } })
  const { headers } = await upstream.nextRequest()
  expect(Number(headers['x-request-timeout-ms'])).toBeLessThanOrEqual(2000)
})

test.each([600_000, -600_000])('clocks %d ms apart kill and lengthen nothing', async (clockShift) => {
  await using upstream = await slowUpstream({ delay: 0 })
  using chain = new Chain()
  await chain.put({ framework: 'fastify', upstream: upstream.url })
  await chain.put({ framework: 'koa', clockShift })
  await chain.put({ framework: 'express', clockShift: -clockShift })
  for (let round = 0; round < 8; round += 1) {
    const response = await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '2000' } })
    expect(response.status).toBe(200)
    const { headers } = await upstream.nextRequest()
    const left = Number(headers['x-request-timeout-ms'])
    expect(left).toBeLessThanOrEqual(2000)
    expect(left).toBeGreaterThan(1000)
    // the leaf's clock is right, so its absolute value is as well
    expect(Number(headers['x-request-deadline']) - Date.now()).toBeLessThanOrEqual(2000)
  }
  for (const hop of chain.hops) expect(hop.all('aborted')).toEqual([])
})

test('a proxy that keeps the upstream connection open does not keep the leaf at work', async () => {
  await using upstream = await slowUpstream()
  using chain = new Chain()
  const leaf = await chain.put({ framework: 'fastify', upstream: upstream.url })
  const proxy = createServer((client) => {
    const onward = connect(Number(new URL(leaf.url).port), '127.0.0.1')
    client.pipe(onward, { end: false })
    onward.pipe(client)
    for (const socket of [client, onward]) socket.on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const upstreamUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`
  await chain.put({ framework: 'koa', upstream: upstreamUrl })
  await fetch(chain.entry.url, { headers: { 'x-request-timeout-ms': '1500' } })
  expect(await leaf.report('aborted')).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  expect(await (await upstream.nextRequest()).abandoned).toBe(true)
  proxy.close()
})

test('detached work outlives its request', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  await using background = await slowUpstream({ delay: '150ms' })
  using chain = new Chain()
  const hop = await chain.put({ framework: 'express', upstream: upstream.url, background: background.url })
  await fetch(hop.url, { headers: { 'x-request-timeout-ms': '100' } })
  const { headers } = await background.nextRequest()
  expect(headers['x-request-deadline']).toBeUndefined()
  expect(await hop.report('background')).toMatchObject({ status: 200 })
})

test('who ended it is told apart at every hop: the client, the own deadline, the deadline of a hop behind', async () => {
  await using upstream = await slowUpstream()
  using chain = new Chain()
  const leaf = await chain.put({
    framework: 'fastify',
    upstream: upstream.url,
    options: { max: '150ms' },
  })
  const entry = await chain.put({ framework: 'express' })
  const response = await fetch(entry.url, { headers: { 'x-request-timeout-ms': '3000' } })
  // the leaf allows less than it was asked for: its deadline, not the caller's
  expect(response.status).toBe(504)
  expect(await leaf.report('finished')).toMatchObject({ outcome: 'deadline_exceeded' })
  expect(await entry.report('finished')).toMatchObject({ status: 504, outcome: 'error' })
  expect(entry.all('aborted')).toEqual([])
})
