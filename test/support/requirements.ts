import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where a program of the system is, if it is on the PATH. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/**
 * What was found, or else the end of the test: skipped with the reason on a developer's machine,
 * failed under CI, where nothing may be missing unnoticed.
 * `requireOrSkip(context, findProgram('redis-server'), 'apt-get install redis-server')`
 */
export function requireOrSkip<T>(
  context: { skip(note: string): never },
  found: T | undefined,
  reason: string,
): T {
  if (found !== undefined) return found
  const { CI } = process.env
  if (CI === undefined || CI === '' || CI === 'false') return context.skip(reason)
  throw new Error(`missing under CI: ${reason}`)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
