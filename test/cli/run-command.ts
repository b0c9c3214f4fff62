import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { built, type Run } from './run-bin.ts'

let host: ChildProcess | undefined
let latest: Promise<unknown> = Promise.resolve()
afterAll(() => void host?.kill())

/**
 * Runs the built command line to its end: until nothing of it would keep a process alive. One after the other in a process
 * that serves a whole file of tests; `startBin` is for what concerns the process itself.
 */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const running = latest.then(() => runInHost(args, env))
  latest = running.catch(() => {})
  return running
}

function runInHost(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Run> {
  const child = (host ??= startHost())
  return new Promise((resolve, reject) => {
    const fail = (code: number | null): void => {
      host = undefined
      reject(new Error(`the command has ended its process with ${code}: ${args.join(' ')}`))
    }
    child.once('exit', fail)
    child.once('message', (run: Run) => {
      child.off('exit', fail)
      resolve(run)
    })
    child.send({ args, env })
  })
}

function startHost(): ChildProcess {
  const program = fileURLToPath(new URL('command-host.mjs', import.meta.url))
  // it hands warnings over itself
  return fork(program, [built.href], { env: {}, execArgv: ['--no-warnings'] })
}
