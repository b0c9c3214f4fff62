import { describe, expect, test } from 'vitest'
import { codecs, encodeDeadline } from '@timebudget/core/wire'
import type { CodecName } from '@timebudget/core/wire'

const now = 1_767_225_600_000
const everything = Object.keys(codecs).filter((name): name is CodecName => name in codecs)

function encode(
  left: number,
  emit?: readonly CodecName[],
  expiresAt: number = now + left,
): Record<string, string> {
  return encodeDeadline({ remaining: () => left, expiresAt }, emit)
}

describe('our pair', () => {
  test('is what is written by default', () => {
    expect(encode(5_000)).toStrictEqual({
      'x-request-deadline': String(now + 5_000),
      'x-request-timeout-ms': '5000',
    })
  })

  test('rounds what is left up and the moment down, so that the moment is never later than what is held', () => {
    expect(encode(10.5)).toStrictEqual({
      'x-request-deadline': String(now + 10),
      'x-request-timeout-ms': '11',
    })
  })

  test('is never zero while something is left', () => {
    expect(encode(0.0001)['x-request-timeout-ms']).toBe('1')
  })

  test('more than fits is written as the most that fits, which is earlier', () => {
    expect(encode(Number.MAX_SAFE_INTEGER)).toStrictEqual({
      'x-request-deadline': '9999999999999',
      'x-request-timeout-ms': '9999999999',
    })
    expect(encode(Number.MAX_VALUE)['x-request-timeout-ms']).toBe('9999999999')
  })

  test('leaves out a moment that cannot be said in 13 digits', () => {
    for (const expiresAt of [0, 5_000, -1, 999_999_999_999, NaN]) {
      expect(encode(100, undefined, expiresAt)).toStrictEqual({ 'x-request-timeout-ms': '100' })
    }
  })
})

describe('nothing is written', () => {
  test.each([0, -1, -Infinity, NaN, Infinity])('in any codec when %d ms are left', (left) => {
    expect(encode(left, everything, now)).toStrictEqual({})
  })

  test('when no codec is asked for', () => {
    expect(encode(5_000, [])).toStrictEqual({})
  })
})

describe('grpc-timeout', () => {
  test.each([
    [0.0000001, '1n'],
    [0.000001, '1n'],
    [1, '1000000n'],
    [99.999999, '99999999n'],
    [100, '100000u'],
    [2_500.4, '2500400u'],
    [99_999.999, '99999999u'],
    [100_000, '100000m'],
    [99_999_999, '99999999m'],
    [100_000_999, '100000S'],
    [99_999_999_000, '99999999S'],
    [100_000_000_000, '1666666M'],
    [6_000_000_000_000, '1666666H'],
    [Number.MAX_SAFE_INTEGER, '99999999H'],
    [Number.MAX_VALUE, '99999999H'],
  ])('writes %d ms as %s, in the finest unit that fits eight digits', (left, value) => {
    expect(encode(left, ['grpc-timeout'])).toStrictEqual({ 'grpc-timeout': value })
  })
})

describe('the others', () => {
  test('milliseconds are written like ours', () => {
    const emit: CodecName[] = ['connect-timeout-ms', 'x-envoy-expected-rq-timeout-ms', 'request-timeout-ms']
    expect(encode(10.5, emit)).toStrictEqual({
      'connect-timeout-ms': '11',
      'x-envoy-expected-rq-timeout-ms': '11',
      'request-timeout-ms': '11',
    })
  })

  test('seconds are rounded down', () => {
    const emit: CodecName[] = ['x-stainless-timeout', 'x-server-timeout', 'prefer-wait']
    expect(encode(2_999, emit)).toStrictEqual({
      'x-stainless-timeout': '2',
      'x-server-timeout': '2',
      prefer: 'wait=2',
    })
  })

  test('less than a second is left out where only seconds can be said', () => {
    expect(encode(999, ['x-stainless-timeout', 'x-server-timeout', 'prefer-wait'])).toStrictEqual({})
  })
})
