import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Deadline, isOutcome, type LedgerEntry, startOperation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { formatServerTiming, parseServerTiming } from '@timebudget/core/wire'

const entryOf = (path: string, more: Partial<LedgerEntry> = {}): LedgerEntry => ({
  name: path,
  path,
  start: 0,
  remaining: 1_000,
  granted: 1_000,
  floor: 0,
  reserve: 0,
  spent: 12.34,
  outcome: 'ok',
  source: 'local',
  ...more,
})

const hostile = [
  'a\r\nSet-Cookie: admin=1',
  'a"b',
  'a, b;dur=9',
  'a;dur=1',
  'a b',
  '__proto__',
  'größe',
  '名前',
  '😀',
  '',
  ' ',
  'x'.repeat(10_000),
  '\u0000',
]

describe('Server-Timing of a ledger', () => {
  test('has one entry an operation, in the order of their start, children with the way to them', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1m', { clock })
    clock.advance(0.44)
    const outer = startOperation('generate', { deadline })
    clock.advance(10)
    const inner = startOperation('rerank', { deadline: outer.deadline })
    clock.advance(2.25)
    inner.end('degraded')
    startOperation('cite', { deadline: outer.deadline })
    outer.end()
    expect(formatServerTiming(deadline.ledger.entries)).toBe(
      [
        'generate;dur=12.3;desc="ok";start=0.4',
        'generate.rerank;dur=2.3;desc="degraded";start=10.4',
        'generate.cite;desc="running";start=12.7',
      ].join(', '),
    )
  })

  test('of nothing is none', () => {
    expect(formatServerTiming([])).toBeUndefined()
  })

  test('has at most 64 entries', () => {
    const header = formatServerTiming(Array.from({ length: 100 }, (_, number) => entryOf(`op${number}`)))
    expect(header?.split(', ')).toHaveLength(64)
    expect(header).toContain('op63;')
  })

  test('has at most 4 KiB, of whole entries', () => {
    const header = formatServerTiming(Array.from({ length: 64 }, () => entryOf('x'.repeat(120)))) ?? ''
    expect(header.length).toBeLessThanOrEqual(4_096)
    expect(header.length).toBeGreaterThan(3_900)
    for (const part of header.split(', ')) expect(part).toMatch(/^x{120};dur=12.3;desc="ok";start=0$/)
  })

  test.each(hostile)('law 11: has one entry and nothing else for an operation named %j', (name) => {
    const header = formatServerTiming([entryOf(name)]) ?? ''
    expect(header).toMatch(/^[\w!#$%&'*+\-.^`|~]{1,128};dur=12.3;desc="ok";start=0$/)
    expect(parseServerTiming(header)).toHaveLength(1)
  })
})

describe('Server-Timing read', () => {
  test.each<readonly [header: string, read: readonly object[]]>([
    ['db;dur=53', [{ path: 'db', spent: 53, start: 0, outcome: 'ok' }]],
    ['cache;desc="Cache Read";dur=23.2', [{ path: 'cache', spent: 23.2, outcome: 'ok' }]],
    ['miss', [{ path: 'miss', spent: undefined, outcome: undefined }]],
    ['DB ; DUR = 5 ; Desc = shed', [{ path: 'DB', spent: 5, outcome: 'shed' }]],
    ['a;desc="running";start=4', [{ path: 'a', spent: undefined, outcome: undefined, start: 4 }]],
    ['a;dur=5;desc="running"', [{ path: 'a', spent: 5, outcome: undefined }]],
    [
      'db;desc="read, then write; twice";dur=5, app;dur=9',
      [
        { path: 'db', spent: 5 },
        { path: 'app', spent: 9 },
      ],
    ],
    [
      String.raw`db;desc="say \", x";dur=5, app;dur=9`,
      [
        { path: 'db', spent: 5 },
        { path: 'app', spent: 9 },
      ],
    ],
    ['db;desc=";dur=9";dur=5', [{ path: 'db', spent: 5 }]],
    ['', []],
    [' , ,;dur=5,', []],
    ['a;dur=-1', [{ path: 'a', spent: undefined }]],
    ['a;dur=;start=', [{ path: 'a', spent: undefined, start: 0 }]],
    ['a;dur=soon;start=NaN', [{ path: 'a', spent: undefined, start: 0 }]],
    ['a;dur=Infinity;start=1e300', [{ path: 'a', spent: undefined, start: 0 }]],
    ['a;dur=86400000', [{ path: 'a', spent: 86_400_000 }]],
    ['a;dur=86400001', [{ path: 'a', spent: undefined }]],
    ['__proto__;dur=1;desc="constructor"', [{ path: '__proto__', spent: 1, outcome: 'ok' }]],
  ])('%j', (header, read) => {
    const reports = parseServerTiming(header)
    expect(reports).toHaveLength(read.length)
    expect(reports).toMatchObject(read)
  })

  test('gives back what was written', () => {
    const name = fc.stringMatching(/^[a-z][\w.-]{0,20}$/)
    const tenths = fc.nat(100_000).map((number) => number / 10)
    const entry = fc.record({
      path: name,
      start: tenths,
      spent: tenths,
      outcome: fc.constantFrom('ok', 'degraded', 'error', 'shed', 'client_closed', 'stream_stalled'),
    })
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 40 }), (reports) => {
        const header = formatServerTiming(reports.map(({ path, ...more }) => entryOf(path, more))) ?? ''
        expect(parseServerTiming(header)).toEqual(reports.slice(0, header.split(', ').length))
      }),
    )
  })

  test('law 11: never throws, and never holds more than 64 clean entries, whatever a peer sends', () => {
    const nearlyRight = fc.string({ unit: fc.constantFrom(...'ab;=,"\\ .durescta019-\r\n\u0000é'.split('')) })
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 6_000 }), nearlyRight), (header) => {
        const reports = parseServerTiming(header)
        expect(reports.length).toBeLessThanOrEqual(64)
        for (const { path, start, spent, outcome } of reports) {
          expect(path).toMatch(/^[\w!#$%&'*+\-.^`|~]{1,128}$/)
          expect(start).toBeGreaterThanOrEqual(0)
          expect(spent ?? 0).toBeGreaterThanOrEqual(0)
          expect(outcome === undefined || isOutcome(outcome)).toBe(true)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('law 11: reads 64 entries and no more', () => {
    const header = Array.from({ length: 100 }, (_, number) => `op${number};dur=1`).join(',')
    const reports = parseServerTiming(header)
    expect(reports).toHaveLength(64)
    expect(reports.at(-1)?.path).toBe('op63')
  })

  test('law 11: reads no entry that its limit cuts in two', () => {
    const header = `${'a;dur=1,'.repeat(2)}${'x'.repeat(4_068)},tail;dur=123456`
    expect(header.slice(0, 4_096)).toMatch(/,tail;dur=12$/)
    expect(parseServerTiming(header).map(({ path }) => path.slice(0, 4))).toEqual(['a', 'a', 'xxxx'])
  })

  test('law 11: takes no longer for ten megabytes than for the four kilobytes it reads', () => {
    for (const unit of [',', ';', '"', '\\"', 'a;dur=1,', ' ', 'a=";']) {
      const header = Buffer.alloc(10_000_000, unit).toString('latin1')
      const started = performance.now()
      parseServerTiming(header)
      expect(performance.now() - started).toBeLessThan(250)
    }
  })
})
