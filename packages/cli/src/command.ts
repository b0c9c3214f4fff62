import type { Look } from './terminal/look.ts'

/** Where a command writes to. */
export interface Terminal {
  readonly look: Look
  print(text: string): void
  /** For what went wrong. */
  complain(text: string): void
  /** Shows how far a command is, in one line that the next one replaces; `''` clears it. Absent where nobody watches. */
  progress?(text: string): void
  /** Aborts when the user presses Ctrl-C; a command that never asks for it is ended by the system instead. */
  stopSignal(): AbortSignal
}

/**
 * What one word after `timebudget` does. Gives the exit code, 0 where it gives none.
 * @throws UsageError if the arguments make no sense; any other error if the command failed.
 */
export type Command = (args: readonly string[], terminal: Terminal) => Promise<number | void>

/** Arguments that make no sense; the message names the flag. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
