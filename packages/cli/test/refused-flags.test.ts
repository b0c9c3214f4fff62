import { expect, test } from 'vitest'
import { runCli } from '../src/cli.ts'
import { RecordingTerminal } from './support/recording-terminal.ts'

test.each([
  ['probe', [], 'URL'],
  ['probe', ['ftp://host/'], 'URL'],
  ['probe', ['http://'], 'URL'],
  ['probe', ['http://a', 'http://b'], 'http://b'],
  ['probe', ['--budget', 'soon', 'http://a'], '--budget'],
  ['probe', ['--budget', '0', 'http://a'], '--budget'],
  ['probe', ['--budget', 'Infinity', 'http://a'], '--budget'],
  ['probe', ['--grace=-1s', 'http://a'], '--grace'],
  ['probe', ['--emit', 'x-grace', 'http://a'], '--emit'],
  ['probe', ['--emit', 'toString', 'http://a'], '--emit'],
  ['probe', ['-n', '0', 'http://a'], '--count'],
  ['probe', ['-n', '1e3', 'http://a'], '--count'],
  ['probe', ['--concurrency', '1.5', 'http://a'], '--concurrency'],
  ['probe', ['--header', 'no colon', 'http://a'], '--header'],
  ['probe', ['--header', 'bad name: x', 'http://a'], '--header'],
  ['probe', ['--header', 'x: \u{7}', 'http://a'], '--header'],
  ['probe', ['--data', '@/no/such/file', 'http://a'], '--data'],
  ['probe', ['--method', 'G ET', 'http://a'], '--method'],
  ['probe', ['--speed', '3', 'http://a'], '--speed'],
  ['simulate', ['--speed', '3'], '--speed'],
  ['simulate', ['now'], 'now'],
  ['doctor', [], 'URL'],
  ['doctor', ['--leaf', 'here', 'http://a'], '--leaf'],
  ['doctor', ['--leaf', '70000', 'http://a'], '--leaf'],
  ['doctor', ['--upstream', 'http://b', 'http://a'], '--upstream'],
  ['doctor', ['--leaf', '4100', '--upstream', 'b:8080', 'http://a'], '--upstream'],
  ['doctor', ['--patience', '0', 'http://a'], '--patience'],
])('%s %j is refused before anything is sent, by a message that names the flag', async (name, args, flag) => {
  const terminal = new RecordingTerminal()
  expect(await runCli([name, ...args], terminal)).toBe(2)
  expect(terminal.printed).toBe('')
  expect(terminal.complained).toContain(flag)
  expect(terminal.complained).toContain(`timebudget ${name} --help`)
})

test.each([
  ['probe', ['--budget', '--grace', '--emit', '--count', '--concurrency', '--insecure', '--json', '--ascii']],
  ['doctor', ['--leaf', '--upstream', '--patience', '--method', '--header', '--data', '--json', '--ascii']],
])('%s --help tells its options and exit codes, in lines of at most 82 characters', async (name, flags) => {
  const terminal = new RecordingTerminal()
  expect(await runCli([name, '--help'], terminal)).toBe(0)
  for (const flag of flags) expect(terminal.printed).toContain(flag)
  expect(terminal.printed).toContain('Exit codes: 0')
  for (const line of terminal.printed.split('\n')) expect(line.length).toBeLessThanOrEqual(82)
})
