import { type Command, type Terminal, UsageError } from './command.ts'
import { simulateCommand } from './simulate/command.ts'

const commands: readonly Command[] = [simulateCommand]

/** Runs the command line and returns the exit code: 0 done, 1 failed, 2 not understood. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h') {
    if (name === undefined) terminal.complain(overview())
    else terminal.print(overview())
    return name === undefined ? 2 : 0
  }
  const command = commands.find((each) => each.name === name)
  if (command === undefined) {
    terminal.complain(`timebudget: there is no command '${name}'\n\n${overview()}`)
    return 2
  }
  try {
    await command.run(rest, terminal)
    return 0
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    terminal.complain(`timebudget ${name}: ${message}\n`)
    if (!(error instanceof UsageError)) return 1
    terminal.complain(`See timebudget ${name} --help\n`)
    return 2
  }
}

function overview(): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`)
  return `Usage: timebudget <command> [options]\n\n${lines.join('\n')}\n\ntimebudget <command> --help tells its options.\n`
}
