import { describe, expect, test } from 'vitest'
import type { DecodeRecord } from '../src/decoder.ts'
import type { Visit } from '../src/load.ts'
import { drawReport, quantile, summarise } from '../src/report.ts'

function visit(id: string, fields: Partial<Visit>): Visit {
  return { id, answered: false, latency: 3000, ended: 3000, serverTiming: undefined, ...fields }
}

function record(id: string, started: number, ended: number, tokens: number): DecodeRecord {
  return { id, outcome: 'done', started, ended, tokens }
}

describe('the sums of a run', () => {
  test('count who was answered, and the latency of all', () => {
    const visits = [
      visit('a', { answered: true, latency: 100 }),
      visit('b', { answered: true, latency: 900 }),
      visit('c', {}),
    ]
    expect(summarise(visits, undefined)).toEqual({
      users: 3,
      answered: 2,
      p50: 900,
      p99: 3000,
      decoding: undefined,
    })
  })

  test('an answered user has cost nobody anything in vain', () => {
    const { decoding } = summarise([visit('a', { answered: true, ended: 1000 })], [record('a', 0, 1000, 50)])
    expect(decoding).toEqual({
      seconds: 1,
      secondsForNobody: 0,
      secondsAfterLeaving: 0,
      tokens: 50,
      tokensAfterLeaving: 0,
    })
  })

  test('decoding for a user who left half way is all for nobody, half of it after the leaving', () => {
    const { decoding } = summarise([visit('a', { ended: 3000 })], [record('a', 2000, 4000, 100)])
    expect(decoding).toEqual({
      seconds: 2,
      secondsForNobody: 2,
      secondsAfterLeaving: 1,
      tokens: 100,
      tokensAfterLeaving: 50,
    })
  })

  test('decoding that begins after the user left is all of it after the leaving', () => {
    const { decoding } = summarise([visit('a', { ended: 3000 })], [record('a', 8000, 9000, 50)])
    expect(decoding).toMatchObject({ secondsForNobody: 1, secondsAfterLeaving: 1, tokensAfterLeaving: 50 })
  })

  test('decoding that stopped before the user left has nothing after the leaving', () => {
    const { decoding } = summarise(
      [visit('a', { ended: 3000 })],
      [record('a', 2500, 2900, 20), record('a', 3000, 3000, 0)],
    )
    expect(decoding).toMatchObject({ secondsForNobody: 0.4, secondsAfterLeaving: 0, tokensAfterLeaving: 0 })
  })

  test('requests that are no user’s, such as the warm-up, are left out', () => {
    expect(summarise([visit('a', {})], [record('warm-up', 0, 1000, 50)]).decoding).toMatchObject({
      seconds: 0,
      tokens: 0,
    })
  })

  test('a quantile is one of the values, and that of none is no number', () => {
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2)
    expect(quantile([1, 2, 3, 4], 0.99)).toBe(4)
    expect(quantile([7], 0)).toBe(7)
    expect(quantile([], 0.5)).toBeNaN()
  })
})

test('the report sets the runs side by side, aligned to the right', () => {
  const decoding = {
    seconds: 10,
    secondsForNobody: 2.5,
    secondsAfterLeaving: 0.04,
    tokens: 500,
    tokensAfterLeaving: 2,
  }
  const rows = drawReport([
    {
      heading: ['without', 'timebudget'],
      summary: { users: 200, answered: 50, p50: 3000, p99: 3001, decoding: undefined },
    },
    {
      heading: ['with', 'timebudget'],
      summary: { users: 200, answered: 101, p50: 1234, p99: 2987, decoding },
    },
  ])
  expect(rows).toEqual([
    '                                     without                with',
    '                                  timebudget          timebudget',
    'answered in time             50 of 200  25 %    101 of 200  51 %',
    'latency p50                           3.00 s              1.23 s',
    'latency p99                           3.00 s              2.99 s',
    'decode seconds                      not told                10.0',
    '  spent for nobody                  not told           2.5  25 %',
    '  after the user had left           not told                 0.0',
    'tokens decoded                      not told                 500',
    '  after the user had left           not told                   2',
  ])
})

test('the report leaves out what the model spent if no model tells', () => {
  const summary = { users: 4, answered: 4, p50: 700, p99: 900, decoding: undefined }
  expect(drawReport([{ heading: ['with', 'timebudget'], summary }])).toEqual([
    '                            with',
    '                      timebudget',
    'answered in time    4 of 4 100 %',
    'latency p50               0.70 s',
    'latency p99               0.90 s',
  ])
})
