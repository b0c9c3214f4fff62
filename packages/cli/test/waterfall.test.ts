import { describe, expect, test } from 'vitest'
import { columnsFor, drawAxis, drawRow, type Row } from '../src/probe/waterfall.ts'

const unicode = { columns: 60, colour: false, unicode: true }
const ascii = { ...unicode, unicode: false }
const scale = { span: 1000, deadline: 1000 }

function row(of: Partial<Row>): Row {
  return { label: 'work', depth: 0, start: 0, end: 0, remark: '', colour: 'green', ...of }
}

describe('a bar', () => {
  const columns = { label: 6, bar: 20, remark: 12, stacked: false }
  const draw = (of: Partial<Row>, look = unicode, to = scale): string => drawRow(row(of), to, columns, look)

  test('begins at its start, is as long as it took, to an eighth of a character, and stands before the deadline', () => {
    expect(draw({ start: 0, end: 1000 })).toBe('  work    ████████████████████│     1 s')
    expect(draw({ start: 500, end: 750 })).toBe('  work              █████     │  250 ms')
    expect(draw({ start: 500, end: 575 })).toBe('  work              █▌        │   75 ms')
    expect(draw({ start: 0, end: 1 })).toBe('  work    ▏                   │    1 ms')
    expect(draw({ start: 990, end: 990.4 })).toBe('  work                       ▊│  0.4 ms')
    expect(draw({ start: 500, end: 750 }, ascii)).toBe('  work              #####     |  250 ms')
  })

  test('that crosses the deadline shows where', () => {
    const late = { span: 2000, deadline: 1000 }
    expect(draw({ start: 500, end: 2000, remark: 'late' }, unicode, late)).toBe(
      '  work         █████┃█████████    1.5 s  late',
    )
    expect(draw({ start: 1500, end: 1600 }, unicode, late)).toBe('  work              │    █       100 ms')
  })

  test('of what was still running is drawn in another way, and without a time', () => {
    expect(draw({ start: 800, end: 1000, running: true, remark: 'still running' })).toBe(
      '  work                    ░░░░│          still runni…',
    )
    expect(draw({ start: 800, end: 1000, running: true }, ascii)).toBe('  work                    ----|')
  })

  test('stays in the picture, whatever is claimed of it', () => {
    for (const of of [
      { start: 5000, end: 9000 },
      { start: 0, end: 86_400_000 },
      { start: 1000, end: 1000 },
      { start: 900, end: 100 },
    ]) {
      const [bar = ''] = /.{21}(?=.{8}$)/.exec(draw(of)) ?? []
      expect(bar).toMatch(/^[ █-▏]*[│┃]$/u)
    }
  })

  test('stands below its name where there is no room beside it', () => {
    const narrow = columnsFor([row({})], { ...unicode, columns: 40 })
    expect(drawRow(row({ depth: 1, end: 500, remark: 'shed' }), scale, narrow, unicode)).toBe(
      `    work  shed                    500 ms\n  ${'█'.repeat(17)}▌${' '.repeat(17)}│`,
    )
  })

  test('has its name indented, and cut where it is too long', () => {
    expect(draw({ label: 'generate', depth: 1, end: 1000 })).toMatch(/^ {4}gen… {2}█/)
    expect(draw({ label: 'generate', depth: 1, end: 1000 }, ascii)).toMatch(/^ {4}gen~ {2}#/)
  })
})

test('the time of the deadline stands above its line', () => {
  const columns = { label: 6, bar: 20, remark: 0, stacked: false }
  expect(drawAxis(scale, columns, unicode)).toBe(`          0                 1 s`)
  expect(drawAxis({ span: 2000, deadline: 1000 }, columns, unicode)).toBe(`          0       1 s`)
  expect(drawAxis({ span: 1_000_000, deadline: 10 }, columns, unicode)).toBe(`          0 10 ms`)
})

test.each([40, 67, 68, 80, 120, 160])(
  'the parts of a line take no more than %i columns together',
  (columns) => {
    const rows = [row({ label: 'x'.repeat(300), remark: 'first_token_timeout', end: 999 })]
    const look = { ...unicode, columns }
    const lines = drawRow(rows[0] ?? row({}), scale, columnsFor(rows, look), look).split('\n')
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
  },
)
