import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

interface Entry {
  readonly specifier: string
  readonly source: string
}

const packages = new URL('../packages/', import.meta.url)

function entriesOf(folder: string): Entry[] {
  const manifest: unknown = JSON.parse(readFileSync(new URL(`${folder}/package.json`, packages), 'utf8'))
  const { name, exports } = manifest as { name: string; exports: Record<string, Record<string, string>> }
  return Object.entries(exports).flatMap(([subpath, { '@timebudget/source': source }]) =>
    source === undefined ? [] : [{ specifier: name + subpath.slice(1), source: `${folder}/${source}` }],
  )
}

const entries = readdirSync(packages).flatMap(entriesOf)

test.for(entries)(
  'tests get $specifier from its sources, never from a build',
  async ({ specifier, source }) => {
    const url = new URL(source, packages)
    expect(existsSync(url)).toBe(true)
    expect(await import(specifier)).toBe(await import(fileURLToPath(url)))
  },
)
