import { parseArgs, type ParseArgsConfig } from 'node:util'
import { parseDuration } from '@timebudget/core'
import { UsageError } from './command.ts'

type FlagOptions = NonNullable<ParseArgsConfig['options']>
type Parsed<T extends FlagOptions> = ReturnType<
  typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>
>

/**
 * The arguments, by flag.
 * @throws UsageError that names a flag which does not exist.
 */
export function parseFlags<T extends FlagOptions>(args: readonly string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    // Node's own message names the flag
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** Milliseconds, more than nothing and less than for ever. @throws UsageError that names the flag. */
export function readTime(text: string, flag: string): number {
  const milliseconds = durationOf(text, flag)
  if (milliseconds > 0 && milliseconds < Infinity) return milliseconds
  throw new UsageError(`${flag}: expected more than nothing, and less than for ever, got '${text}'`)
}

function durationOf(text: string, flag: string): number {
  try {
    return parseDuration(text, flag)
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** A whole number within its limits. @throws UsageError that names the flag. */
export function readWhole(
  text: string,
  { flag, least, most }: { readonly flag: string; readonly least: number; readonly most: number },
): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new UsageError(`${flag}: expected a whole number from ${least} to ${most}, got '${text}'`)
}
