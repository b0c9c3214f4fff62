import { type Command, type Terminal, UsageError } from './command.ts'
import { doctorCommand } from './doctor/command.ts'
import { exitCodes } from './exit-codes.ts'
import { probeCommand } from './probe/command.ts'
import { version } from './manifest.ts'
import { simulateCommand } from './simulate/command.ts'

const commands: readonly Command[] = [probeCommand, doctorCommand, simulateCommand]

/** Runs the command line and returns the exit code: 0 done, 1 failed, 2 not understood, others as the command's help says. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h') {
    if (name === undefined) terminal.complain(overview())
    else terminal.print(overview())
    return name === undefined ? exitCodes.usage : exitCodes.ok
  }
  if (name === '--version' || name === '-v') {
    terminal.print(`${version()}\n`)
    return exitCodes.ok
  }
  const command = commands.find((each) => each.name === name)
  if (command === undefined) {
    terminal.complain(`timebudget: there is no command '${name}'\n\n${overview()}`)
    return exitCodes.usage
  }
  try {
    return (await command.run(rest, terminal)) ?? exitCodes.ok
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    terminal.complain(`timebudget ${name}: ${message}\n`)
    if (!(error instanceof UsageError)) return exitCodes.failed
    terminal.complain(`See timebudget ${name} --help\n`)
    return exitCodes.usage
  }
}

function overview(): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`)
  return `Usage: timebudget <command> [options]\n\n${lines.join('\n')}\n\ntimebudget <command> --help tells its options, timebudget --version the version.\n`
}
