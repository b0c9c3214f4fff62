import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const require = createRequire(import.meta.url)

/** The folder of the built command line. */
export const built: URL = new URL('dist/', pathToFileURL(require.resolve('@timebudget/cli/package.json')))

const bin = fileURLToPath(new URL('bin.js', built))

/** What a command printed and exited with. */
export interface Run {
  readonly exitCode: number | null
  readonly printed: string
  readonly complained: string
}

/** A command that is running. */
export interface Running {
  readonly child: ChildProcess
  readonly finished: Promise<Run>
}

/** Starts the built `timebudget`; nothing of our environment is passed on but what is given. */
export function startBin(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  node: string = process.execPath,
): Running {
  const child = spawn(node, [bin, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  let complained = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complained += text))
  const finished = once(child, 'close').then(() => ({ exitCode: child.exitCode, printed, complained }))
  return { child, finished }
}
