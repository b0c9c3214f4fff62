import { describe, expect, test } from 'vitest'
import { parseServerTiming } from '../src/server-timing.ts'
import { plain, type Paint } from '../src/terminal.ts'
import { drawWaterfall } from '../src/waterfall.ts'

const header =
  'orchestrator;dur=900;desc="ok";start=0, orchestrator.retrieve;dur=100;desc="ok";start=0, ' +
  'orchestrator.generate;dur=700;desc="ok";start=200, orchestrator.rerank;dur=100;desc="ok";start=100, ' +
  'orchestrator.generate.queue;dur=400;desc="ok";start=200, orchestrator.generate.decode;dur=300;desc="ok";start=600'

function draw(serverTiming: string, paint: Paint = plain): string[] {
  return drawWaterfall(parseServerTiming(serverTiming), { budget: 1200, columns: 12, paint })
}

describe('the waterfall of a Server-Timing header', () => {
  test('has a line for each operation, under its parent, in the order of their start, to the scale of the budget', () => {
    expect(draw(header)).toEqual([
      'request         █████████░░░    900 of 1200 ms, 300 ms left',
      '└ orchestrator  ▒▒▒▒▒▒▒▒▒       900 ms  ok',
      '  ├ retrieve    █               100 ms  ok',
      '  ├ rerank       █              100 ms  ok',
      '  └ generate      ▒▒▒▒▒▒▒       700 ms  ok',
      '    ├ queue       ████          400 ms  ok',
      '    └ decode          ███       300 ms  ok',
    ])
  })

  test('shows every operation, however short, and shrinks the scale when the budget was overrun', () => {
    expect(draw('a;dur=0.2;desc="ok";start=1200, b;dur=2400;desc="deadline_exceeded";start=0')).toEqual([
      'request  ████████████   2400 of 1200 ms, 0 ms left',
      '├ b      ████████████   2400 ms  deadline_exceeded',
      '└ a            █           0 ms  ok',
    ])
  })

  test('puts what follows a second attempt under the second', () => {
    const rows = draw(
      'call;dur=100;desc="upstream_error";start=0, call;dur=500;desc="ok";start=200, call.work;dur=400;desc="ok";start=250',
    )
    expect(rows.map((row) => row.trimStart().split(/\s{2,}/)[0])).toEqual([
      'request',
      '├ call',
      '└ call',
      '└ work',
    ])
  })

  test('colours failures differently from what went well', () => {
    const looks: string[] = []
    draw('a;dur=1;desc="ok";start=0, b;dur=1;desc="client_closed";start=1', (look, text) => {
      looks.push(look)
      return text
    })
    expect(looks).toEqual(['green', 'red'])
  })

  test('is a line for the request alone if nothing is known of it', () => {
    expect(draw('')).toEqual(['request  ░░░░░░░░░░░░      0 of 1200 ms, 1200 ms left'])
  })
})

describe('reading Server-Timing', () => {
  test('takes parameters in any order, quoted or not, with blanks or without', () => {
    expect(parseServerTiming('a ; start=1.5 ; desc=ok;dur="2",b.c;dur=3;desc="x, y; z";start=0')).toEqual([
      { path: 'a', start: 1.5, duration: 2, outcome: 'ok' },
      { path: 'b.c', start: 0, duration: 3, outcome: 'x, y; z' },
    ])
  })

  test('leaves out what has no start or no duration', () => {
    expect(parseServerTiming('cache;desc="hit", db;dur=12, x;dur=long;start=0')).toEqual([])
  })
})
