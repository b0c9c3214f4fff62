import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How a program ended. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A project of a user's, in a folder of its own, that has installed what would be published. */
export interface Project {
  readonly folder: string
  /** Everything that can be imported of the packages, by its specifier. */
  readonly specifiers: readonly string[]
  manifestOf(name: string): Manifest
  /** Installs further packages, in the versions that are tested here. */
  install(names: readonly string[]): Promise<void>
  run(program: string, args: readonly string[]): Promise<Ran>
  remove(): void
}

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  readonly dependencies?: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const consumer = new URL('consumer/', import.meta.url)
// the cache has what `npm ci` fetched
const quietly = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
const noRegistry = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/

/**
 * Packs every published package, as it is built, and installs the tarballs; `undefined` if no registry can be reached for
 * what they depend on.
 */
export async function installPacked(names: readonly string[]): Promise<Project | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-packed-'))
  const published = publishedPackages()
  const install = (specifiers: readonly string[]): Promise<Ran> =>
    run('npm', ['install', ...quietly, ...specifiers], folder)
  const project: Project = {
    folder,
    specifiers: published.flatMap(specifiersOf),
    manifestOf: (name) => readManifest(join(folder, 'node_modules', name)),
    install: async (further) => succeeded(await install(further.map(asTested))),
    run: (program, args) => run(program, args, folder),
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }),
  }
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const workspaces = published.map(({ name }) => `--workspace=${name}`)
    succeeded(await run('npm', ['pack', '--silent', '--pack-destination', folder, ...workspaces], root))
    for (const file of readdirSync(consumer)) copyFileSync(new URL(file, consumer), join(folder, file))
    const tarballs = readdirSync(folder).filter((file) => file.endsWith('.tgz'))
    const installed = await install([...tarballs.map((file) => `./${file}`), ...names.map(asTested)])
    if (installed.code !== 0 && noRegistry.test(installed.stderr)) {
      project.remove()
      return undefined
    }
    succeeded(installed)
    return project
  } catch (error) {
    project.remove()
    throw error
  }
}

function publishedPackages(): Manifest[] {
  return readdirSync(join(root, 'packages'))
    .map((name) => readManifest(join(root, 'packages', name)))
    .filter((manifest) => manifest.private !== true)
}

function specifiersOf({ name, exports }: Manifest): string[] {
  const modules = Object.entries(exports).filter(([, target]) => typeof target !== 'string')
  return modules.map(([subpath]) => name + subpath.slice(1))
}

function asTested(name: string): string {
  return `${name}@${readManifest(join(root, 'node_modules', name)).version}`
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

function succeeded({ code, stderr }: Ran): void {
  if (code !== 0) throw new Error(stderr)
}

function run(program: string, args: readonly string[], cwd: string): Promise<Ran> {
  // telemetry that is registered, and not only imported, needs an SDK
  const env = { ...process.env, NODE_OPTIONS: '', OTEL_SDK_DISABLED: 'true' }
  const shell = process.platform === 'win32' && program === 'npm'
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env, shell, timeout: 150_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, stdout, stderr })
    })
  })
}
