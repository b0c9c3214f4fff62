import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../src/cli.ts'
import { policies } from '../src/simulate/policies.ts'
import { RecordingTerminal } from './support/recording-terminal.ts'

async function run(...args: string[]): Promise<{ exitCode: number; printed: string; complained: string }> {
  const terminal = new RecordingTerminal()
  const exitCode = await runCli(args, terminal)
  return { exitCode, printed: terminal.printed, complained: terminal.complained }
}

test('without a command it tells what there is, and fails', async () => {
  const { exitCode, complained } = await run()
  expect(exitCode).toBe(2)
  expect(complained).toContain('simulate')
})

test('--help prints the commands, and those of a command its options', async () => {
  expect(await run('--help')).toMatchObject({ exitCode: 0, printed: expect.stringContaining('simulate') })
  for (const help of ['--help', '-h']) {
    const { exitCode, printed } = await run('simulate', help)
    expect(exitCode).toBe(0)
    for (const flag of ['--load', '--budget', '--duration', '--noise', '--seed', '--svg', '--json'])
      expect(printed).toContain(flag)
  }
})

test('--version prints the version of the package, and the help says so', async () => {
  const manifest: { readonly version: string } = JSON.parse(
    await readFile(new URL('../package.json', import.meta.url), 'utf8'),
  )
  for (const flag of ['--version', '-v'])
    expect(await run(flag)).toEqual({ exitCode: 0, printed: `${manifest.version}\n`, complained: '' })
  expect((await run('--help')).printed).toContain('--version')
})

test('an unknown command is named', async () => {
  expect(await run('simulat')).toMatchObject({
    exitCode: 2,
    complained: expect.stringContaining("'simulat'"),
  })
})

test.each([
  ['--load', '0,1'],
  ['--load', '1,,2'],
  ['--load', 'twice'],
  ['--load', 'Infinity'],
  ['--budget', 'soon'],
  ['--budget', '0'],
  ['--budget', 'Infinity'],
  ['--duration', ''],
  ['--duration', '100d'],
  ['--noise', '11'],
  ['--noise', '1e'],
  ['--noise', ''],
  ['--seed', '1.5'],
  ['--seed', '12345678901'],
  ['--speed', '3'],
])('%s %s is refused before anything runs, by a message that names the flag', async (flag, value) => {
  const { exitCode, printed, complained } = await run('simulate', flag, value)
  expect(exitCode).toBe(2)
  expect(complained).toContain(flag)
  expect(complained).toContain('--help')
  expect(printed).toBe('')
})

test('the same seed gives the same bytes, table, JSON and chart; another seed gives others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'timebudget-simulate-'))
  try {
    const [one, two] = [join(folder, 'one.svg'), join(folder, 'two.svg')]
    const short = ['simulate', '--load', '0.5', '--duration', '5s']
    const first = await run(...short, '--svg', one)
    const second = await run(...short, '--svg', two)
    expect(first.exitCode).toBe(0)
    expect(second).toEqual(first)
    expect(await readFile(two, 'utf8')).toBe(await readFile(one, 'utf8'))
    expect((await run(...short, '--seed', '2')).printed).not.toBe(first.printed)
    const json = await run(...short, '--json')
    expect(JSON.parse(json.printed)).toMatchObject({ options: { seed: 1 }, results: expect.any(Array) })
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('the table has a line for each load and policy, in columns that stand in line', async () => {
  const { printed } = await run('simulate', '--load', '0.2,0.4', '--duration', '5s')
  const lines = printed.split('\n').filter((line) => line.startsWith('|'))
  expect(lines).toHaveLength(2 + 2 * policies.length)
  expect(new Set(lines.map((line) => line.length)).size).toBe(1)
})

test('a chart that cannot be written fails the command, after the table', async () => {
  const file = join(tmpdir(), 'no', 'such', 'folder', 'chart.svg')
  const { exitCode, printed, complained } = await run(
    'simulate',
    '--load',
    '1',
    '--duration',
    '1s',
    '--svg',
    file,
  )
  expect(exitCode).toBe(1)
  expect(complained).toContain('--svg')
  expect(printed).toContain('| ')
})
