import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'timebudget-release-'))
const packages = readdirSync(join(root, 'packages'))

beforeAll(() => {
  for (const path of ['scripts', '.changeset/config.json', 'CHANGELOG.md'])
    cpSync(join(root, path), join(folder, path), { recursive: true })
  for (const name of packages) {
    mkdirSync(join(folder, 'packages', name), { recursive: true })
    for (const file of ['package.json', 'README.md'])
      cpSync(join(root, 'packages', name, file), join(folder, 'packages', name, file))
  }
  git('init', '--quiet')
  commit()
})

afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))

function git(...args: string[]): void {
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder })
}

function commit(): void {
  git('add', '--all')
  git('commit', '--quiet', '--message', 'release')
}

/** What a script of the release complains of. */
function complaintsOf(script: string, ...args: string[]): Promise<string[]> {
  const path = join(folder, 'scripts', script)
  return new Promise((resolve) => {
    execFile(process.execPath, [path, ...args], { cwd: folder }, (_error, _stdout, stderr) => {
      resolve(stderr.split('\n').filter((line) => line !== ''))
    })
  })
}

test('a release is refused for what would be dead on npm, and passes once the repository has a name', async () => {
  await complaintsOf('name-repository.mjs', 'https://github.com/somebody/timebudget')
  expect(await complaintsOf('check-release.mjs')).toContain('there are changes that are not committed')
  await complaintsOf('date-changelog.mjs')
  commit()
  expect(await complaintsOf('check-release.mjs')).toEqual([])

  const manifest = readFileSync(join(folder, 'packages/core/package.json'), 'utf8')
  expect(JSON.parse(manifest)).toMatchObject({
    repository: { url: 'git+https://github.com/somebody/timebudget.git', directory: 'packages/core' },
  })
})

test('what is not the address of a repository is not taken for one', async () => {
  expect(await complaintsOf('name-repository.mjs', 'github.com/somebody')).toEqual([
    expect.stringContaining('usage'),
  ])
})
