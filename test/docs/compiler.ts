import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './documents.ts'

/** A fault that the compiler found; `line` counts from 1. */
export interface Fault {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** A folder below this one, for files that need the repository's packages; git, lint and the type-check pass over it. */
export function scratchFolder(): { readonly path: string; [Symbol.dispose](): void } {
  const parent = fileURLToPath(new URL('.scratch/', import.meta.url))
  mkdirSync(parent, { recursive: true })
  writeFileSync(join(parent, '.gitignore'), '*\n')
  const path = mkdtempSync(join(parent, 'docs-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** Compiles the files of the folder against the packages' sources, whose own faults are left to the type-check. */
export async function compile(folder: string): Promise<Fault[]> {
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      allowJs: true,
      allowUnreachableCode: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      isolatedDeclarations: false,
      // what a user's own tsconfig may leave out
      noPropertyAccessFromIndexSignature: false,
      noUncheckedIndexedAccess: false,
      exactOptionalPropertyTypes: false,
      erasableSyntaxOnly: false,
      paths: { 'prom-client': [fileURLToPath(new URL('strangers/prom-client.mts', import.meta.url))] },
    },
    include: ['*.mts', '*.mjs'],
    exclude: [],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const output = await runCompiler(folder)
  const pattern = /^(\S+?)\((\d+),\d+\): error (TS\d+: .*)$/gm
  return Array.from(output.matchAll(pattern), ([, file = '', line = '', text = '']) => ({
    file,
    line: Number(line),
    text,
  })).filter(({ file }) => !/(^|\/)packages\//.test(file))
}

function runCompiler(folder: string): Promise<string> {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [compiler, '-p', folder, '--noEmit', '--pretty', 'false'],
      { cwd: folder, maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null || stdout.includes('error TS')) resolve(stdout)
        else reject(new Error(`the compiler failed: ${stderr}${stdout}`, { cause: error }))
      },
    )
  })
}
