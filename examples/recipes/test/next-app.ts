import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformWithOxc } from 'vite'
import { vi } from 'vitest'
import { dyingWithUs } from '../../../test/support/dying-with-us.ts'
import { freePort } from '../../../test/support/free-port.ts'
import type { RunningRecipe } from './http-recipe.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const installed = join(root, 'node_modules/.cache/timebudget-next/node_modules')
const next = join(installed, 'next/dist/bin/next')

const config = {
  serverExternalPackages: ['@timebudget/core', '@timebudget/clients'],
  turbopack: { root },
  experimental: { turbopackFileSystemCacheForBuild: false }, // half of the build, for nobody
}

/** Whether Next is there. */
export const isNextInstalled: boolean = existsSync(next)

/** An application that `next build` has built, in a folder below this one: there the repository's packages are found. */
export class NextApp {
  readonly #folder: string

  /** Of these files, TypeScript among them. */
  static async build(files: Readonly<Record<string, string>>): Promise<NextApp> {
    const app = new NextApp()
    try {
      for (const [name, source] of Object.entries(files)) await app.#write(name, source)
      const { child, output } = app.#run([next, 'build'])
      const [code] = await once(child, 'close')
      if (code !== 0) throw new Error(`next build: ${output.said}${output.faults}`)
      return app
    } catch (error) {
      app.remove()
      throw error
    }
  }

  constructor() {
    const parent = fileURLToPath(new URL('.scratch/', import.meta.url))
    mkdirSync(parent, { recursive: true })
    writeFileSync(join(parent, '.gitignore'), '*\n') // lint and the type-check pass over it, too
    this.#folder = mkdtempSync(join(parent, 'next-'))
    const modules = join(this.#folder, 'node_modules')
    mkdirSync(join(modules, '@timebudget'), { recursive: true })
    for (const name of readdirSync(installed)) symlinkSync(join(installed, name), join(modules, name))
    // a link to a workspace is bundled, whatever serverExternalPackages says
    for (const name of ['core', 'clients']) {
      for (const part of ['package.json', 'dist']) {
        cpSync(join(root, 'packages', name, part), join(modules, '@timebudget', name, part), {
          recursive: true,
        })
      }
    }
    writeFileSync(join(this.#folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(this.#folder, 'next.config.mjs'), `export default ${JSON.stringify(config)}`)
  }

  /** Runs it by `next start`, or by a server of its own among its files. */
  async start(indexUrl: string, server?: string): Promise<RunningRecipe> {
    const port = String(await freePort())
    const program = server === undefined ? [next, 'start', '--hostname', '127.0.0.1'] : [server]
    const { child, output } = this.#run(program, { INDEX_URL: indexUrl, PORT: port })
    await vi.waitUntil(() => output.said.includes('Ready') || child.exitCode !== null, 60_000)
    if (child.exitCode !== null) throw new Error(`it ended: ${output.said}${output.faults}`)
    return {
      url: `http://127.0.0.1:${port}`,
      faults: () => output.faults,
      async close() {
        child.kill('SIGKILL')
        await once(child, 'close')
      },
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #run(
    program: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): { readonly child: ChildProcess; readonly output: { readonly said: string; readonly faults: string } } {
    const [first = '', ...rest] = [...dyingWithUs(), process.execPath, ...program]
    const { PATH, HOME } = process.env
    const child = spawn(first, rest, {
      cwd: this.#folder,
      env: { PATH, HOME, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', ...env },
    })
    const output = { said: '', faults: '' }
    child.stdout.on('data', (text) => (output.said += String(text)))
    child.stderr.on('data', (text) => (output.faults += String(text)))
    return { child, output }
  }

  async #write(name: string, source: string): Promise<void> {
    const path = join(this.#folder, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    // Next would ask for a TypeScript that has a compiler's API
    const { code } = await transformWithOxc(source.replaceAll(/(\.\.?\/[\w./-]+)\.ts'/g, "$1.js'"), name)
    writeFileSync(path, code)
  }
}
