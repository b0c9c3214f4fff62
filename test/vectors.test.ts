import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { codecs, decodeDeadline, defaultAccept, encodeDeadline, PeerClock } from '@timebudget/core/wire'
import type { CodecName, HeaderSource } from '@timebudget/core/wire'

interface DecodeVector {
  readonly name: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly now: number
  readonly peerHistory?: readonly { readonly transit: number; readonly at: number }[]
  readonly accept?: readonly CodecName[]
  readonly skewTolerance?: number
  readonly expect: {
    readonly remaining?: number
    readonly absolute?: number
    readonly codec?: CodecName
    readonly charged?: number
    readonly skew?: number
    readonly malformed: readonly string[]
  }
}

interface EncodeVector {
  readonly name: string
  readonly remaining: number
  readonly expiresAt: number
  readonly emit?: readonly CodecName[]
  readonly expect: Readonly<Record<string, string>>
}

interface Vectors {
  readonly decode: readonly DecodeVector[]
  readonly encode: readonly EncodeVector[]
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('./vectors/wire.json', import.meta.url), 'utf8'))

/** As Node folds what came in: names in lower case, the values of a repeated name joined by commas. */
function fold(headers: DecodeVector['headers']): HeaderSource {
  const folded: Record<string, string> = {}
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const earlier = folded[key]
    folded[key] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return folded
}

/** As HTTP/2 implementations may hand it out: every value of a repeated name by itself. */
function collect(headers: DecodeVector['headers']): HeaderSource {
  const collected: Record<string, string[]> = {}
  for (const [name, value] of headers) (collected[name.toLowerCase()] ??= []).push(value)
  return collected
}

function peerWith(history: DecodeVector['peerHistory']): PeerClock {
  const peer = new PeerClock()
  for (const { transit, at } of history ?? []) peer.observe(transit, at)
  return peer
}

function decode(vector: DecodeVector, headers: HeaderSource): DecodeVector['expect'] {
  const { skewTolerance, now, accept = defaultAccept } = vector
  const peer = peerWith(vector.peerHistory)
  const { deadline, malformed } = decodeDeadline(headers, accept, now, {
    peer,
    ...(skewTolerance !== undefined && { skewTolerance }),
  })
  const { epochMs, ...read } = deadline ?? {}
  return {
    ...read,
    ...(epochMs !== undefined && { absolute: epochMs }),
    malformed: malformed.map((entry) => entry.header),
  }
}

describe('reading', () => {
  test.each(vectors.decode)('$name', (vector) => {
    const expected = vector.expect.codec === undefined ? vector.expect : { charged: 0, ...vector.expect }
    expect(decode(vector, fold(vector.headers))).toEqual(expected)
  })

  test.each(vectors.decode.filter((vector) => !vector.headers.some(([name]) => name === 'Prefer')))(
    'as lists of values: $name',
    (vector) => {
      const expected = vector.expect.codec === undefined ? vector.expect : { charged: 0, ...vector.expect }
      expect(decode(vector, collect(vector.headers))).toEqual(expected)
    },
  )
})

describe('writing', () => {
  test.each(vectors.encode)('$name', ({ remaining, expiresAt, emit, expect: expected }) => {
    expect(encodeDeadline({ remaining: () => remaining, expiresAt }, emit)).toStrictEqual(expected)
  })
})

describe('the vectors themselves', () => {
  test('are at least eighty, each with a name of its own', () => {
    const names = [...vectors.decode, ...vectors.encode].map((vector) => vector.name)
    expect(vectors.decode.length).toBeGreaterThanOrEqual(80)
    expect(vectors.encode.length).toBeGreaterThanOrEqual(15)
    expect(new Set(names).size).toBe(names.length)
  })

  test('name every codec, as decisive when read and as written', () => {
    const decisive = new Set(vectors.decode.map((vector) => vector.expect.codec))
    const written = new Set(vectors.encode.flatMap((vector) => Object.keys(vector.expect)))
    for (const codec of Object.values(codecs)) {
      if (codec.name !== 'request-deadline-ms') expect(decisive).toContain(codec.name)
      expect(written).toContain(codec.header)
    }
  })
})
