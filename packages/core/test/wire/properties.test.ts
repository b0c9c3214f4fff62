import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { codecs, decodeDeadline, encodeDeadline, PeerClock } from '@timebudget/core/wire'
import type { Codec, CodecName } from '@timebudget/core/wire'

const now = 1_767_225_600_000
const all = Object.values(codecs)
const names = all.map((codec) => codec.name)
const runs = { numRuns: 2_500 }

/** Each dialect's grammar, written a second time and slowly, as the judge of what is malformed. */
const grammar: Record<CodecName, RegExp> = {
  'x-request-deadline': /^[0-9]{13}$/,
  'x-request-timeout-ms': /^[0-9]{1,10}$/,
  'grpc-timeout': /^[0-9]{1,8}[HMSmun]$/,
  'connect-timeout-ms': /^[0-9]{1,10}$/,
  'x-envoy-expected-rq-timeout-ms': /^[0-9]{1,15}$/,
  'request-deadline-ms': /^[0-9]{13}$/,
  'request-timeout-ms': /^[0-9]{1,10}$/,
  'x-stainless-timeout': /^[0-9]{1,15}(\.[0-9]{1,20})?$/,
  'x-server-timeout': /^[0-9]{1,15}(\.[0-9]{1,20})?$/,
  'prefer-wait': /^[\t ]*wait[\t ]*=[\t ]*[0-9]{1,15}[\t ]*$/i,
}

const nearlyRight = '0123456789 ,.-+eExHMSmun=;"wait\t\u0000'.split('')

/** Anything at all, and much that is nearly right. */
const anyValue: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...nearlyRight), maxLength: 24 }),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.double().map(String),
  fc.nat().map((number) => `wait=${number}`),
  fc
    .tuple(fc.nat(999_999_999), fc.constantFrom('H', 'M', 'S', 'm', 'u', 'n', 'x', 'h'))
    .map(([count, unit]) => `${count}${unit}`),
)

describe.each(all)('$name', (codec: Codec) => {
  test('reads what its grammar allows and nothing else, and never throws', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const read = codec.parse(value)
        const isAllowed = grammar[codec.name].test(value)
        if (isAllowed) expect(read).toBeGreaterThanOrEqual(0)
        else if (codec.name === 'prefer-wait') expect(read === undefined || read > 0).toBe(true)
        else expect(read).toBeUndefined()
      }),
      runs,
    )
  })

  test('malformed input never means expired', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        fc.pre(
          codec.name === 'prefer-wait' ||
            !value.split(',').some((part) => grammar[codec.name].test(part.trim())),
        )
        const { deadline, malformed } = decodeDeadline({ [codec.header]: value }, names, now)
        if (codec.name === 'prefer-wait') expect(deadline?.remaining ?? 1).toBeGreaterThan(0)
        else {
          expect(deadline).toBeUndefined()
          expect(malformed).toHaveLength(1)
          expect(malformed[0]?.value.length).toBeLessThanOrEqual(64)
        }
      }),
      runs,
    )
  })

  test('what it writes it reads back, and never as later than what is held', () => {
    const left = fc.oneof(
      fc.double({ min: 1e-9, max: 1e16, noNaN: true }),
      fc.integer({ min: 1, max: 2 ** 31 }),
      fc.double({ min: 0.001, max: 60_000, noNaN: true }),
    )
    fc.assert(
      fc.property(left, (ms) => {
        const held = codec.kind === 'absolute' ? now + ms : ms
        const value = codec.format(held)
        if (value === undefined) {
          expect(ms).toBeLessThan(1_000)
          return
        }
        const read = codec.parse(value)
        expect(read).toBeGreaterThan(0)
        // Rounded up to a millisecond, or to a nanosecond, because 0 would mean something else.
        const latest = codec.name === 'grpc-timeout' ? Math.max(held, 1e-6) : Math.ceil(held)
        expect(read).toBeLessThanOrEqual(latest * (1 + Number.EPSILON))
      }),
      runs,
    )
  })

  test('takes time linear in the length at most', () => {
    const short = slowestParse(codec, 10_000)
    const long = slowestParse(codec, 100_000)
    expect(long).toBeLessThan(Math.max(short, 0.05) * 60)
  })
})

/** Milliseconds for the worst of several shapes of that length; each the best of five. */
function slowestParse(codec: Codec, length: number): number {
  const shapes = ['1', '1,', ' ', ',', '0.', '"', '\\"', 'wait=', ';=', 'S'].map((unit) =>
    unit.repeat(Math.ceil(length / unit.length)),
  )
  const times = shapes.map((value) => {
    let best = Infinity
    for (let round = 0; round < 5; round += 1) {
      const started = performance.now()
      codec.parse(value)
      best = Math.min(best, performance.now() - started)
    }
    return best
  })
  return Math.max(...times)
}

const anyHeaders = fc.dictionary(
  fc.constantFrom(...all.map((codec) => codec.header), '__proto__', 'constructor'),
  fc.oneof(anyValue, fc.array(anyValue, { maxLength: 4 })),
)

test('no set of headers makes reading throw, and what is read is one of the accepted codecs', () => {
  fc.assert(
    fc.property(anyHeaders, fc.shuffledSubarray(names), (headers, accept) => {
      const { deadline, malformed } = decodeDeadline(headers, accept, now, { peer: new PeerClock() })
      expect(malformed.length).toBeLessThanOrEqual(accept.length)
      if (deadline === undefined) return
      expect(Number.isFinite(deadline.remaining)).toBe(true)
      expect(deadline.charged).toBe(0)
      expect(accept).toContain(deadline.codec)
    }),
    { numRuns: 5_000 },
  )
})

test('what is sent as a pair is read as what was held, to a millisecond, whatever the clocks show', () => {
  const skew = fc.integer({ min: -400 * 86_400_000, max: 400 * 86_400_000 })
  fc.assert(
    fc.property(fc.double({ min: 0.001, max: 9_999_999_998, noNaN: true }), skew, (left, ahead) => {
      const headers = encodeDeadline({ remaining: () => left, expiresAt: Math.floor(now + ahead + left) })
      const { deadline } = decodeDeadline(headers, names, now)
      expect(deadline?.remaining).toBe(Math.ceil(left))
      expect(deadline?.epochMs).toBeLessThanOrEqual(now + ahead + left)
    }),
    runs,
  )
})

test('no history charges more than two seconds, charges backwards or lengthens a budget', () => {
  const message = fc.record({
    transit: fc.oneof(fc.integer({ min: -5_000, max: 5_000 }), fc.integer()),
    passed: fc.integer({ min: -1_000, max: 100_000 }),
  })
  fc.assert(
    fc.property(fc.array(message, { maxLength: 60 }), (messages) => {
      const peer = new PeerClock()
      let at = now
      for (const { transit, passed } of messages) {
        at += passed
        const { charged, skew } = peer.observe(transit, at)
        expect(charged === 0 || (charged > 50 && charged <= 2_000)).toBe(true)
        expect(skew).toBeLessThanOrEqual(transit)
      }
    }),
    runs,
  )
})
