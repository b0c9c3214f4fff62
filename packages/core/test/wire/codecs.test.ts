import { describe, expect, test } from 'vitest'
import { codecs, defaultAccept, defaultEmit } from '@timebudget/core/wire'
import type { CodecName } from '@timebudget/core/wire'

type Row = readonly [value: string, expected: number | undefined]

const wholeMilliseconds: readonly Row[] = [
  ['1', 1],
  ['5000', 5000],
  ['0005', 5],
  ['0', 0],
  ['2147483648', 2_147_483_648],
  ['9999999999', 9_999_999_999],
  ['10000000000', undefined],
]

/** What no codec of digits may read as a number; a sign or a blank is not "nearly right". */
const neverANumber = [
  '',
  ' ',
  ' 5',
  '5 ',
  '5 5',
  '\t5',
  '-1',
  '+5',
  '-0',
  '1e3',
  '5.0',
  '.5',
  '5.',
  '0x10',
  '0b1',
  '0o7',
  '1_000',
  '1,000',
  '5s',
  '5ms',
  'soon',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  '\u0000',
  '5\u0000',
  '５',
  '٥',
  '9007199254740992',
  '9007199254740993',
  '99999999999999999999',
]

const decimalSeconds = new Set(['5.0'])

const tables: Record<CodecName, readonly Row[]> = {
  'x-request-deadline': [
    ['1767225600000', 1_767_225_600_000],
    ['9999999999999', 9_999_999_999_999],
    ['0000000000000', 0],
    ['1767225600', undefined],
    ['176722560000', undefined],
    ['5000', undefined],
    ['5', undefined],
    ['0', undefined],
    ['8640000000000000', undefined],
    ['8640000000000001', undefined],
    ['2026-01-01T00:00:00Z', undefined],
    ['1767225600.00', undefined],
    ['-176722560000', undefined],
    ['+176722560000', undefined],
  ],
  'x-request-timeout-ms': wholeMilliseconds,
  'connect-timeout-ms': wholeMilliseconds,
  'request-timeout-ms': wholeMilliseconds,
  'request-deadline-ms': [
    ['1767225600000', 1_767_225_600_000],
    ['1767225600', undefined],
    ['8640000000000000', undefined],
  ],
  'grpc-timeout': [
    ['1H', 3_600_000],
    ['2M', 120_000],
    ['3S', 3_000],
    ['4m', 4],
    ['5u', 0.005],
    ['6n', 0.000006],
    ['0S', 0],
    ['0n', 0],
    ['99999999n', 99.999999],
    ['99999999H', 99_999_999 * 3_600_000],
    ['600H', 2_160_000_000],
    ['100000000m', undefined],
    ['123456789n', undefined],
    ['S', undefined],
    ['5', undefined],
    ['-5S', undefined],
    ['+5S', undefined],
    ['1.5S', undefined],
    ['1e3S', undefined],
    ['5 S', undefined],
    ['5s', undefined],
    ['5h', undefined],
    ['5U', undefined],
    ['5N', undefined],
    ['5ms', undefined],
    ['5SS', undefined],
  ],
  'x-envoy-expected-rq-timeout-ms': [
    ['15000', 15_000],
    ['0', Infinity],
    ['000', Infinity],
    ['10000000000', 10_000_000_000],
  ],
  'x-stainless-timeout': [
    ['600', 600_000],
    ['1', 1_000],
    ['60.0', 60_000],
    ['2.5', 2_500],
    ['0', Infinity],
    ['0.0', Infinity],
    ['0.25', 250],
    ['1.', undefined],
    ['1.2.3', undefined],
    ['1.-5', undefined],
    ['1.5e3', undefined],
    [`1.${'0'.repeat(21)}`, undefined],
  ],
  'x-server-timeout': [
    ['300', 300_000],
    ['9.5', 9_500],
    ['0.30000000000000004', 300],
    ['0', Infinity],
    ['5.0x', undefined],
    ['5.0000000000x', undefined],
  ],
  'prefer-wait': [
    ['wait=10', 10_000],
    ['Wait = 10', 10_000],
    ['respond-async, wait=10', 10_000],
    ['wait=10, respond-async', 10_000],
    ['wait=3; strict', 3_000],
    ['wait=3, wait=9', 3_000],
    ['return=minimal; note="a, wait=1", wait=7', 7_000],
    ['note="\\", wait=1", wait=7', 7_000],
    ['respond-async', Infinity],
    ['waiting=5', Infinity],
    ['note="wait=5', Infinity],
    ['wait=0', Infinity],
    ['', Infinity],
    ['wait', undefined],
    ['wait=', undefined],
    ['wait=soon', undefined],
    ['wait=-1', undefined],
    ['wait=1.5', undefined],
    ['wait=1e3', undefined],
    ['wait="10"', undefined],
    ['wait=1 0', undefined],
    ['respond-async, wait=x', undefined],
  ],
}

describe.each(Object.values(codecs))('$name', (codec) => {
  test.each(tables[codec.name])('reads %j as %s', (value, expected) => {
    expect(codec.parse(value)).toBe(expected)
  })

  if (codec.name !== 'prefer-wait') {
    test.each(neverANumber)('finds %j malformed', (value) => {
      const readsFractions = codec.name === 'x-stainless-timeout' || codec.name === 'x-server-timeout'
      expect(codec.parse(value)).toBe(readsFractions && decimalSeconds.has(value) ? 5_000 : undefined)
    })
  }

  test('is found under its own name', () => {
    expect(codecs[codec.name]).toBe(codec)
    expect(codec.header).toBe(codec.header.toLowerCase())
  })
})

test('prefer-wait alone has another header name than codec name', () => {
  const others = Object.values(codecs).filter((codec) => codec.header !== codec.name)
  expect(others.map((codec) => codec.header)).toEqual(['prefer'])
})

test('by default the deadline is read from our pair, gRPC, Connect and Envoy, and written as our pair', () => {
  expect(defaultAccept).toEqual([
    'x-request-deadline',
    'x-request-timeout-ms',
    'grpc-timeout',
    'connect-timeout-ms',
    'x-envoy-expected-rq-timeout-ms',
  ])
  expect(defaultEmit).toEqual(['x-request-deadline', 'x-request-timeout-ms'])
  expect(() => Object.assign(defaultAccept, { length: 0 })).toThrow(TypeError)
})
