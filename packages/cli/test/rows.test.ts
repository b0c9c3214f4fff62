import type { TimingReport } from '@timebudget/core/wire'
import { expect, test } from 'vitest'
import type { Probe } from '../src/probe/probe.ts'
import { rowsOf } from '../src/probe/rows.ts'
import type { Exchange } from '../src/request/exchange.ts'

const exchange: Exchange = {
  ending: 'complete',
  stamps: {},
  sentAt: 100,
  firstByteAt: 400,
  total: 500,
  status: 200,
  headers: {},
  bytes: 2,
  body: '{}',
  events: undefined,
  error: undefined,
}

function rows(operations: readonly TimingReport[], of: Partial<Exchange> = {}): unknown[] {
  const probe: Probe = {
    outcome: 'ok',
    because: undefined,
    budget: 1000,
    operations,
    exchange: { ...exchange, ...of },
  }
  return rowsOf(probe).map(({ label, depth, start, end, remark }) => [label, depth, start, end, remark])
}

function report(
  path: string,
  start: number,
  spent?: number,
  outcome: TimingReport['outcome'] = 'ok',
): TimingReport {
  return { path, start, spent, outcome: spent === undefined ? undefined : outcome }
}

test('what a service told is drawn from the moment of sending on, a child under its parent', () => {
  expect(
    rows([report('a', 10, 200), report('a.b', 20, 50), report('a.b.c', 30, 5, 'shed'), report('x.y', 40)]),
  ).toEqual([
    ['connect', 0, 0, 100, ''],
    ['first byte', 0, 100, 400, ''],
    ['a', 1, 110, 310, ''],
    ['b', 2, 120, 170, ''],
    ['c', 3, 130, 135, 'shed'],
    ['x.y', 1, 140, 500, 'still running'],
    ['body', 0, 400, 500, ''],
  ])
})

test('a stream has its first event and their number', () => {
  expect(rows([], { events: { count: 3, firstAt: 450, error: undefined } }).slice(2)).toEqual([
    ['first event', 0, 100, 450, ''],
    ['stream', 0, 400, 500, '3 events'],
  ])
})

test('what never came is not drawn', () => {
  expect(rows([], { sentAt: undefined, firstByteAt: undefined })).toEqual([['connect', 0, 0, 500, '']])
  expect(rows([], { firstByteAt: undefined })).toEqual([
    ['connect', 0, 0, 100, ''],
    ['first byte', 0, 100, 500, ''],
  ])
})

test('names of dots alone, and a parent told after its child, are borne', () => {
  expect(
    rows([report('..', 0, 1), report('a.', 0, 1), report('a', 0, 1), report('.a', 0, 1)]).slice(2, 6),
  ).toEqual([
    ['..', 1, 100, 101, ''],
    ['a.', 2, 100, 101, ''],
    ['a', 1, 100, 101, ''],
    ['.a', 1, 100, 101, ''],
  ])
})
