import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, type TestContext } from 'vitest'
import { findProgram, requireOrSkip } from './requirements.ts'
import { dyingWithUs } from './dying-with-us.ts'
import { freePort } from './free-port.ts'

/** A Redis of a test's own. */
export interface RedisServer {
  readonly port: number
  /** Stops the process where it is, and lets it go on. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

/** Starts a server on a free port, or the given one, that keeps nothing. */
export async function startRedis(program: string, port?: number): Promise<RedisServer> {
  const chosen = port ?? (await freePort())
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-redis-'))
  const [first = program, ...rest] = [
    ...dyingWithUs(),
    ...[program, '--port', String(chosen), '--bind', '127.0.0.1'],
    ...['--save', '', '--appendonly', 'no', '--dir', folder],
  ]
  const server = spawn(first, rest, { stdio: 'ignore' })
  const exited = once(server, 'exit')
  await listening(chosen)
  return {
    port: chosen,
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    async stop() {
      server.kill('SIGCONT')
      server.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let starting: Promise<RedisServer> | undefined
afterAll(async () => {
  const server = await starting
  await server?.stop()
})

/** Where the program is; without it the test is skipped, or fails under CI. */
export function redisProgram(context: TestContext): string {
  return requireOrSkip(context, findProgram('redis-server'), 'apt-get install redis-server')
}

/** The server of a test file, started on first use. */
export async function redisServer(context: TestContext): Promise<RedisServer> {
  const program = redisProgram(context)
  starting ??= startRedis(program)
  return starting
}

async function listening(port: number): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (error) {
      if (attempt === 200) throw error
      await new Promise((resolve) => setTimeout(resolve, 25))
    } finally {
      socket.destroy()
    }
  }
}
