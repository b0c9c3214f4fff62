import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const textOf = (path: string): string => readFileSync(fileURLToPath(new URL(path, root)), 'utf8')
const page = textOf('SECURITY.md')

const claims = [...page.matchAll(/\| `([\w./-]+\.ts)`: (.+?) \|$/gm)].map(([, path = '', title = '']) => ({
  path,
  title,
}))
const files = [...page.matchAll(/`((?:packages|test)\/[\w./-]+\.ts)`/g)].map(([, path = '']) => path)

test('SECURITY.md names many tests', () => {
  expect(claims.length).toBeGreaterThan(20)
})

test.each(claims)('SECURITY.md names a test of $path that is there: $title', ({ path, title }) => {
  expect(textOf(path)).toContain(title)
})

test.each(files)('SECURITY.md names %s, which is there', (path) => {
  expect(existsSync(fileURLToPath(new URL(path, root)))).toBe(true)
})

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
}

test('SECURITY.md lists what the published packages bring with them, and nothing else', () => {
  const manifests = readdirSync(fileURLToPath(new URL('packages', root))).map(
    (folder) => JSON.parse(textOf(`packages/${folder}/package.json`)) as Manifest,
  )
  const brought = manifests
    .filter((manifest) => manifest.private !== true)
    .map(({ name, dependencies = {} }) => ({
      name,
      strangers: Object.keys(dependencies).filter((dependency) => !dependency.startsWith('@timebudget/')),
    }))
    .filter(({ strangers }) => strangers.length > 0)
    .map(
      ({ name, strangers }) =>
        `| \`${name}\` | ${strangers.map((stranger) => `\`${stranger}\``).join(', ')} |`,
    )
  const listed = page.split('\n').filter((line) => line.startsWith('| `@timebudget/'))
  expect(listed.toSorted()).toEqual(brought.toSorted())
})
