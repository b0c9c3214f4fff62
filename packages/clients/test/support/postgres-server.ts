import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { findProgram } from '../../../../test/support/requirements.ts'
import { Client } from 'pg'
import { dyingWithUs } from '../../../../test/support/dying-with-us.ts'
import { freePort } from '../../../../test/support/free-port.ts'

/** A PostgreSQL of a test's own. */
export interface PostgresServer {
  readonly port: number
  /** Stops the server's processes where they are, and lets them go on. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

/** Where `initdb` and `postgres` are: Debian keeps them off the PATH. */
export function findPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql'
  try {
    const versions = readdirSync(debian).toSorted((a, b) => Number(b) - Number(a))
    const folder = versions
      .map((version) => join(debian, version, 'bin'))
      .find((bin) => readdirSync(bin).includes('initdb'))
    if (folder !== undefined) return folder
  } catch {
    // not a Debian
  }
  return findProgram('initdb')?.replace(/\/initdb$/, '')
}

/** Starts a server with a fresh cluster on a free port; as `postgres`, since it refuses to run as root. */
export async function startPostgres(bin: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-pg-'))
  chmodSync(folder, 0o777)
  const data = join(folder, 'data')
  const identity = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--init-groups'] : []
  const command = (program: string, ...args: string[]): [string, string[]] => {
    const [first = program, ...rest] = [...dyingWithUs(...identity), join(bin, program), ...args]
    return [first, rest]
  }
  execFileSync(
    ...command('initdb', '-D', data, '-U', 'tester', '-A', 'trust', '--no-sync', '--locale=C', '-E', 'UTF8'),
    {
      stdio: 'ignore',
      cwd: folder,
    },
  )
  const port = await freePort()
  const settings = [
    'fsync=off',
    'max_connections=30',
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
  ]
  const server = spawn(
    ...command('postgres', '-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])),
    { stdio: 'ignore', cwd: folder },
  )
  const exited = once(server, 'exit')
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of processesOf(server.pid)) {
      try {
        process.kill(pid, name)
      } catch {
        // a connection's process that has ended since
      }
    }
  }
  await answering(port)
  return {
    port,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async stop() {
      signal('SIGCONT')
      // at once, whoever is connected
      server.kill('SIGQUIT')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function processesOf(parent: number | undefined): number[] {
  if (parent === undefined) return []
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(parent)], { encoding: 'utf8' })
  return [parent, ...children.split('\n').filter(Boolean).map(Number)]
}

async function answering(port: number): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const client = new Client({ host: '127.0.0.1', port, user: 'tester', database: 'postgres' })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.end()
    } catch (error) {
      if (attempt === 200) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
