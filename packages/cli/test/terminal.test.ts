import { describe, expect, test } from 'vitest'
import { lookOf } from '../src/terminal/look.ts'
import { printable } from '../src/terminal/printable.ts'
import { timeText } from '../src/terminal/time-text.ts'
import { wrapped } from '../src/terminal/wrapped.ts'

describe('what a terminal can show', () => {
  const terminal = { isTTY: true, columns: 100 }

  test('is colour and Unicode on a terminal, and no colour in a pipe', () => {
    expect(lookOf(terminal, {})).toEqual({ columns: 100, colour: true, unicode: true })
    expect(lookOf({}, {})).toEqual({ columns: 80, colour: false, unicode: true })
  })

  test.each([
    [{ NO_COLOR: '1' }, false],
    [{ NO_COLOR: '' }, true],
    [{ NO_COLOR: '1', FORCE_COLOR: '1' }, false],
    [{ FORCE_COLOR: '0' }, false],
    [{ TERM: 'dumb' }, false],
    [{ TERM: 'xterm-256color' }, true],
  ])('%j: colour is %s', (env, colour) => {
    expect(lookOf(terminal, env).colour).toBe(colour)
  })

  test.each([
    [{ LANG: 'en_GB.UTF-8' }, true],
    [{ LANG: 'C.utf8' }, true],
    [{ LANG: 'C' }, false],
    [{ LC_ALL: 'POSIX', LANG: 'en_GB.UTF-8' }, false],
    [{ LC_ALL: '', LC_CTYPE: 'de_DE.ISO-8859-1' }, false],
    [{ TERM: 'linux', LANG: 'en_GB.UTF-8' }, false],
  ])('%j: Unicode is %s', (env, unicode) => {
    expect(lookOf(terminal, env).unicode).toBe(unicode)
  })

  test.each([
    [{ columns: 50 }, { COLUMNS: '90' }, 50],
    [{}, { COLUMNS: '90' }, 90],
    [{}, { COLUMNS: 'wide' }, 80],
    [{ columns: 0 }, {}, 80],
    [{ columns: 3 }, {}, 40],
    [{ columns: 1000 }, {}, 160],
  ])('%j with %j is %i columns wide', (stream, env, columns) => {
    expect(lookOf(stream, env).columns).toBe(columns)
  })
})

test("a stranger's text is shown in one line, without what steers a terminal or turns the writing, and not for ever", () => {
  expect(printable('a\u{1b}[31mb\r\nc\u{9b}d\u{2028}e', 80)).toBe('a [31mb c d e')
  expect(printable('pay \u{202e}lanosrep\u{2066}\u{200b}\u{feff}', 80)).toBe('pay lanosrep')
  expect(printable('\u{0}\u{7f}', 80)).toBe('')
  expect(printable('预算 ✓ 🙂', 80)).toBe('预算 ✓ 🙂')
  expect(printable('🙂'.repeat(50), 5)).toBe('🙂🙂🙂🙂…')
  expect(printable('x'.repeat(10_000_000), 10)).toBe(`${'x'.repeat(9)}…`)
})

test.each([
  [-1, '0 ms'],
  [0.04, '0 ms'],
  [0.44, '0.4 ms'],
  [9.94, '9.9 ms'],
  [9.96, '10 ms'],
  [999.4, '999 ms'],
  [999.6, '1 s'],
  [1240, '1.24 s'],
  [9996, '10 s'],
  [12_340, '12.3 s'],
  [99_940, '99.9 s'],
  [150_000, '2.5 min'],
  [5_940_000, '99 min'],
  [11_160_000, '3.1 h'],
])('%d ms are said as %s', (milliseconds, text) => {
  expect(timeText(milliseconds)).toBe(text)
  expect(text.length).toBeLessThanOrEqual(7)
})

test('a long text is broken between words, and a word that is too long stays whole', () => {
  expect(wrapped('one two three four', { columns: 9 })).toBe('one two\nthree\nfour')
  expect(wrapped('one two', { columns: 9, indent: '    ' })).toBe('    one\n    two')
  expect(wrapped('a incomprehensibilities b', { columns: 10 })).toBe('a\nincomprehensibilities\nb')
  expect(wrapped('', { columns: 10 })).toBe('')
})
