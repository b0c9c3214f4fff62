/** Where a command writes to. */
export interface Terminal {
  print(text: string): void
  /** For what went wrong. */
  complain(text: string): void
}

/** One word after `timebudget`. */
export interface Command {
  readonly name: string
  /** One line, for the list of commands. */
  readonly summary: string
  /** @throws UsageError if the arguments make no sense; any other error if the command failed. */
  run(args: readonly string[], terminal: Terminal): Promise<void>
}

/** Arguments that make no sense; the message names the flag. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
