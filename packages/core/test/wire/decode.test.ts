import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, test } from 'vitest'
import { codecs, decodeDeadline, defaultAccept } from '@timebudget/core/wire'
import type { CodecName, Decoded, HeaderSource } from '@timebudget/core/wire'

const now = 1_767_225_600_000
const everything = Object.keys(codecs).filter((name): name is CodecName => name in codecs)

function decode(headers: HeaderSource, accept: readonly CodecName[] = defaultAccept): Decoded {
  return decodeDeadline(headers, accept, now)
}

describe('what carries no deadline', () => {
  test('a request without one costs no allocation: every such answer is the same frozen object', () => {
    const first = decode({})
    expect(first).toEqual({ malformed: [] })
    expect(decode({ host: 'example.test' })).toBe(first)
    expect(Object.isFrozen(first)).toBe(true)
    expect(Object.isFrozen(first.malformed)).toBe(true)
  })

  test('a codec that is not accepted is not read, valid or not', () => {
    expect(decode({ 'x-request-timeout-ms': '5' }, ['grpc-timeout'])).toEqual({ malformed: [] })
    expect(decode({ 'x-request-timeout-ms': 'soon' }, ['grpc-timeout'])).toEqual({ malformed: [] })
  })

  test('a header inherited from a prototype is not read', () => {
    const headers: HeaderSource = Object.create({ 'x-request-timeout-ms': '5' })
    expect(decode(headers)).toEqual({ malformed: [] })
  })

  test('an envoy timeout of zero sets no limit', () => {
    expect(decode({ 'x-envoy-expected-rq-timeout-ms': '0' })).toEqual({ malformed: [] })
  })

  test('a header that is neither text nor a list is passed over', () => {
    const headers: HeaderSource = JSON.parse('{"x-request-timeout-ms": 5, "grpc-timeout": [5, null]}')
    expect(decode(headers)).toEqual({ malformed: [] })
  })

  test('the headers of node:http are accepted as they are', () => {
    const headers: IncomingHttpHeaders = { 'x-request-timeout-ms': '5' }
    expect(decode(headers).deadline?.remaining).toBe(5)
  })
})

describe('one header', () => {
  test.each([
    ['x-request-timeout-ms', '750', 750],
    ['grpc-timeout', '2S', 2_000],
    ['connect-timeout-ms', '750', 750],
    ['x-envoy-expected-rq-timeout-ms', '750', 750],
    ['request-timeout-ms', '750', 750],
    ['x-stainless-timeout', '2', 2_000],
    ['x-server-timeout', '2', 2_000],
  ] as const)('%s: %s leaves %d ms', (name, value, remaining) => {
    expect(decode({ [name]: value }, everything)).toEqual({
      deadline: { remaining, codec: name, charged: 0 },
      malformed: [],
    })
  })

  test('Prefer: wait is read from the header called prefer', () => {
    const decoded = decode({ prefer: 'respond-async, wait=3' }, everything)
    expect(decoded.deadline).toEqual({ remaining: 3_000, codec: 'prefer-wait', charged: 0 })
  })

  test.each(['x-request-timeout-ms', 'grpc-timeout', 'connect-timeout-ms', 'request-timeout-ms'] as const)(
    'zero in %s means that nothing is left',
    (name) => {
      const value = name === 'grpc-timeout' ? '0S' : '0'
      expect(decode({ [name]: value }, everything).deadline?.remaining).toBe(0)
    },
  )

  test.each(['x-envoy-expected-rq-timeout-ms', 'x-stainless-timeout', 'x-server-timeout'] as const)(
    'zero in %s says nothing',
    (name) => {
      expect(decode({ [name]: '0' }, everything)).toEqual({ malformed: [] })
    },
  )
})

describe('an absolute deadline alone', () => {
  test.each([
    [1_000, 1_000],
    [51, 51],
    [50, 50],
    [49, 50],
    [10, 50],
    [0, 50],
    [-1, 49],
    [-49, 1],
    [-50, 0],
    [-51, -1],
    [-600_000, -599_950],
  ])('%d ms from now leaves %d ms', (left, remaining) => {
    expect(decode({ 'x-request-deadline': String(now + left) }).deadline).toEqual({
      remaining,
      epochMs: now + left,
      codec: 'x-request-deadline',
      charged: 0,
    })
  })

  test('a wider tolerance forgives more', () => {
    const headers = { 'x-request-deadline': String(now - 900) }
    const { deadline } = decodeDeadline(headers, defaultAccept, now, { skewTolerance: 1_000 })
    expect(deadline?.remaining).toBe(100)
  })

  test('without tolerance it is taken at its word', () => {
    const headers = { 'x-request-deadline': String(now - 1) }
    expect(decodeDeadline(headers, defaultAccept, now, { skewTolerance: 0 }).deadline?.remaining).toBe(-1)
  })
})

describe('a pair of absolute and relative', () => {
  test.each([
    ['x-request-deadline', 'x-request-timeout-ms'],
    ['request-deadline-ms', 'request-timeout-ms'],
  ] as const)('%s with %s is one deadline, decided by the relative one', (absolute, relative) => {
    const headers = { [absolute]: String(now + 740), [relative]: '750' }
    expect(decode(headers, everything)).toEqual({
      deadline: { remaining: 750, epochMs: now + 740, codec: relative, charged: 0, skew: 10 },
      malformed: [],
    })
  })

  test('the order in which codecs are accepted does not matter', () => {
    const headers = { 'x-request-deadline': String(now + 740), 'x-request-timeout-ms': '750' }
    const reversed = decode(headers, ['x-request-timeout-ms', 'x-request-deadline'])
    expect(reversed).toEqual(decode(headers))
  })

  test('if one of it is malformed, the other decides alone', () => {
    const withoutRelative = { 'x-request-deadline': String(now + 740), 'x-request-timeout-ms': 'soon' }
    expect(decode(withoutRelative)).toMatchObject({
      deadline: { remaining: 740, codec: 'x-request-deadline' },
      malformed: [{ codec: 'x-request-timeout-ms', value: 'soon' }],
    })
    const withoutAbsolute = { 'x-request-deadline': '1767225600', 'x-request-timeout-ms': '750' }
    const { deadline, malformed } = decode(withoutAbsolute)
    expect(deadline).toEqual({ remaining: 750, codec: 'x-request-timeout-ms', charged: 0 })
    expect(malformed.map((entry) => entry.header)).toEqual(['x-request-deadline'])
  })

  test('if one of it is not accepted, the other decides alone', () => {
    const headers = { 'x-request-deadline': String(now + 740), 'x-request-timeout-ms': '750' }
    expect(decode(headers, ['x-request-timeout-ms']).deadline).toEqual({
      remaining: 750,
      codec: 'x-request-timeout-ms',
      charged: 0,
    })
    expect(decode(headers, ['x-request-deadline']).deadline?.remaining).toBe(740)
  })

  test('members of different pairs are no pair', () => {
    const headers = { 'x-request-deadline': String(now + 740), 'request-timeout-ms': '750' }
    expect(decode(headers, everything).deadline).toMatchObject({
      remaining: 740,
      codec: 'x-request-deadline',
    })
  })

  test('a relative value at its upper end measures no transit: the sender may have had more', () => {
    const headers = { 'x-request-deadline': '9999999999999', 'x-request-timeout-ms': '9999999999' }
    expect(decode(headers).deadline).toEqual({
      remaining: 9_999_999_999,
      epochMs: 9_999_999_999_999,
      codec: 'x-request-timeout-ms',
      charged: 0,
    })
  })
})

describe('several deadlines', () => {
  test('the earliest of all codecs counts', () => {
    const headers = {
      'x-request-deadline': String(now + 2_000),
      'x-request-timeout-ms': '2000',
      'grpc-timeout': '1S',
      'x-envoy-expected-rq-timeout-ms': '15000',
    }
    expect(decode(headers).deadline).toEqual({ remaining: 1_000, codec: 'grpc-timeout', charged: 0 })
  })

  test.each([
    ['777, 784', 777],
    ['784, 777', 777],
    ['784,777', 777],
    ['784 ,\t777', 777],
    ['0, 777', 0],
  ])('a header given twice, %j, counts with its earliest value', (value, remaining) => {
    expect(decode({ 'x-request-timeout-ms': value })).toMatchObject({
      deadline: { remaining },
      malformed: [],
    })
  })

  test.each([
    '784, soon',
    'soon, 784',
    '784,',
    ',784',
    '784, -1',
    '784, 7 7',
    '784, 1e1',
    '784,\u000b7',
    '784,\n7',
  ])('in %j the readable value counts and the other is malformed', (value) => {
    const { deadline, malformed } = decode({ 'x-request-timeout-ms': value })
    expect(deadline?.remaining).toBe(784)
    expect(malformed).toHaveLength(1)
  })

  test('a header given as an array counts with its earliest value', () => {
    const { deadline, malformed } = decode({ 'x-request-timeout-ms': ['784', '777, 790', 'soon', ' 5'] })
    expect(deadline?.remaining).toBe(777)
    expect(malformed).toEqual([
      { codec: 'x-request-timeout-ms', header: 'x-request-timeout-ms', value: 'soon' },
    ])
  })

  test('of two absolute values with one relative value the earliest is the companion', () => {
    const headers = {
      'x-request-deadline': `${now + 900}, ${now + 700}`,
      'x-request-timeout-ms': '750',
    }
    expect(decode(headers).deadline).toMatchObject({ remaining: 750, epochMs: now + 700 })
  })

  test('a limit beside no limit is a limit', () => {
    expect(decode({ 'x-envoy-expected-rq-timeout-ms': '0, 500' }).deadline?.remaining).toBe(500)
  })
})

describe('what is malformed', () => {
  test.each(['', ' 5', '5 ', '-1', '+5', '1e3', '5.0', '0x10', ',', ', ,'])(
    'a timeout of %j is ignored and listed, and does not mean expired',
    (value) => {
      const { deadline, malformed } = decode({ 'x-request-timeout-ms': value })
      expect(deadline).toBeUndefined()
      expect(malformed.map((entry) => entry.codec)).toEqual(['x-request-timeout-ms'])
    },
  )

  test('is listed once a header, cut to 64 characters and without control characters', () => {
    const value = `a\u0000b\u001b[31mc\u007f\u009b${'x'.repeat(100)}`
    const [entry, ...others] = decode({ 'x-request-timeout-ms': `${value}, worse` }).malformed
    expect(others).toEqual([])
    expect(entry).toMatchObject({ codec: 'x-request-timeout-ms', header: 'x-request-timeout-ms' })
    expect(entry?.value).toMatch(/^ab\[31mcx+$/)
    expect(entry?.value.length).toBeLessThanOrEqual(64)
  })

  test('names the header of prefer-wait, other preferences are none of it', () => {
    expect(decode({ prefer: 'wait=soon' }, everything).malformed).toEqual([
      { codec: 'prefer-wait', header: 'prefer', value: 'wait=soon' },
    ])
    expect(decode({ prefer: 'return=minimal, handling=strict' }, everything)).toEqual({ malformed: [] })
  })

  test('is a bad wait, whatever a later one or a text in quotes says', () => {
    const { deadline, malformed } = decode({ prefer: 'note="a,wait=1,b", wait=soon, wait=3' }, everything)
    expect(deadline).toBeUndefined()
    expect(malformed).toHaveLength(1)
  })
})

describe('what is huge', () => {
  test.each(everything)('a megabyte in %s is malformed, found so at once', (name) => {
    for (const value of ['1'.repeat(1_000_000), '1,'.repeat(500_000), ' '.repeat(1_000_000)]) {
      const headers = { [codecs[name].header]: value }
      expect(leastTime(() => decode(headers, everything))).toBeLessThan(50)
      const { deadline, malformed } = decode(headers, everything)
      expect(deadline).toBeUndefined()
      expect(malformed).toHaveLength(1)
    }
  })

  test('of a hundred thousand values only the first 64 are looked at', () => {
    const values = Array.from({ length: 100_000 }, () => '500')
    values[70] = '1'
    const { deadline, malformed } = decode({ 'x-request-timeout-ms': values })
    expect(deadline?.remaining).toBe(500)
    expect(malformed).toMatchObject([{ value: '100000 values' }])
  })
})

/** Milliseconds that the fastest of five runs takes: whatever else keeps the machine busy does not meet all of them. */
function leastTime(work: () => unknown): number {
  const times = Array.from({ length: 5 }, () => {
    const started = performance.now()
    work()
    return performance.now() - started
  })
  return Math.min(...times)
}
