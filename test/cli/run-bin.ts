import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const bin = join(dirname(require.resolve('@timebudget/cli/package.json')), 'dist/bin.js')

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

/** Runs the built `timebudget` to its end. */
export function runBin(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  return startBin(args, env).finished
}
