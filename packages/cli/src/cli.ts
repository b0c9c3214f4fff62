import { type Command, type Terminal, UsageError } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { version } from './manifest.ts'

interface Listed {
  readonly summary: string
  /** Each is loaded alone: all together take longer than most commands. */
  load(): Promise<Command>
}

const commands: ReadonlyMap<string, Listed> = new Map<string, Listed>([
  [
    'probe',
    {
      summary: 'sends a request with a deadline and draws where the time went',
      load: async () => (await import('./probe/command.ts')).probeCommand,
    },
  ],
  [
    'doctor',
    {
      summary: 'says what a service does with deadlines, and what to change',
      load: async () => (await import('./doctor/command.ts')).doctorCommand,
    },
  ],
  [
    'simulate',
    {
      summary: 'what overload does to a chain of services, with and without a time budget',
      load: async () => (await import('./simulate/command.ts')).simulateCommand,
    },
  ],
])

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
  const command = commands.get(name)
  if (command === undefined) {
    terminal.complain(`timebudget: there is no command '${name}'\n\n${overview()}`)
    return exitCodes.usage
  }
  try {
    return (await (await command.load())(rest, terminal)) ?? exitCodes.ok
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    terminal.complain(`timebudget ${name}: ${message}\n`)
    if (!(error instanceof UsageError)) return exitCodes.failed
    terminal.complain(`See timebudget ${name} --help\n`)
    return exitCodes.usage
  }
}

function overview(): string {
  const lines = Array.from(commands, ([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  return `Usage: timebudget <command> [options]\n\n${lines.join('\n')}\n\ntimebudget <command> --help tells its options, timebudget --version the version.\n`
}
