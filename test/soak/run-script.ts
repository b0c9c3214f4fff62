import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { dyingWithUs } from '../support/dying-with-us.ts'

/** How a script ended, and what it has printed. */
export interface ScriptRun {
  readonly code: number | null
  readonly output: string
}

/** Runs a script of ours in a process of its own, as its command line does. */
export async function runScript(
  script: URL,
  args: readonly string[],
  flags: readonly string[] = [],
): Promise<ScriptRun> {
  const [program = '', ...rest] = [
    ...dyingWithUs(),
    ...[process.execPath, ...flags, fileURLToPath(script), ...args],
  ]
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}
