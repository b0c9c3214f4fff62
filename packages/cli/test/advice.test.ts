import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { everyAdvice } from '../src/doctor/advice.ts'
import { whereIs } from '../src/manifest.ts'

test('every advice has lines to write, short enough for a terminal, and leads to a chapter that is there', async () => {
  const docs = await readFile(new URL('../../../docs/cli.md', import.meta.url), 'utf8')
  const chapters = [...docs.matchAll(/^#+ (.*)$/gm)].map(
    ([, title = '']) => `docs/cli.md#${title.toLowerCase().replaceAll(' ', '-')}`,
  )
  for (const { code, more } of Object.values(everyAdvice)) {
    expect(chapters).toContain(more)
    expect(code.length).toBeGreaterThan(0)
    for (const { line, note = '' } of code) {
      expect(Math.max(line.length, note.length)).toBeLessThanOrEqual(90)
    }
  }
})

test('a page is named by its address once the repository has one, and until then by its path', () => {
  const page = 'docs/cli.md#a-leaf'
  expect(whereIs(page, {})).toBe("docs/cli.md#a-leaf, in timebudget's repository")
  expect(whereIs(page, { repository: { url: 'git+https://github.com/somebody/timebudget.git' } })).toBe(
    'https://github.com/somebody/timebudget/blob/main/docs/cli.md#a-leaf',
  )
})
