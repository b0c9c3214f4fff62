import { describe, expect, test } from 'vitest'
import { Terminal } from '../src/terminal.ts'

const escape = '\u001b'

function show(options: { readonly isTTY: boolean; readonly environment?: Record<string, string> }): string {
  let written = ''
  const output = { isTTY: options.isTTY, columns: 40, write: (text: string) => (written += text) }
  const terminal = new Terminal(output, options.environment ?? {})
  terminal.progress('half way')
  terminal.line(terminal.paint('bold', 'done'))
  return written
}

describe('the demo’s output', () => {
  test('in a terminal overwrites its progress and has colours', () => {
    const written = show({ isTTY: true })
    expect(written).toContain(`\r${escape}[Khalf way`)
    expect(written).toContain(`${escape}[1mdone${escape}[22m\n`)
  })

  test('in a pipe is plain lines', () => {
    expect(show({ isTTY: false })).toBe('half way\ndone\n')
  })

  test('has no colours with NO_COLOR, but keeps one line of progress', () => {
    const written = show({ isTTY: true, environment: { NO_COLOR: '1' } })
    expect(written).not.toContain(`${escape}[1m`)
    expect(written).toContain('done\n')
  })

  test('a pipe gets progress only now and then', () => {
    let written = ''
    const terminal = new Terminal({ write: (text: string) => (written += text) }, {})
    for (let index = 0; index < 100; index++) terminal.progress(`${index}`)
    expect(written).toBe('0\n')
  })
})
