import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { type Document, documents, root } from './documents.ts'
import { linksOf } from './markdown.ts'

const byPath = new Map(documents.map((document) => [document.path, document]))

function deadLinksOf(document: Document): string[] {
  return document.lines.flatMap(({ text, line }) =>
    linksOf(text)
      .filter((target) => !leadsSomewhere(target, document))
      .map((target) => `${document.path}:${line} ${target}`),
  )
}

function leadsSomewhere(target: string, from: Document): boolean {
  if (/^[a-z]+:/.test(target)) return URL.canParse(target)
  const [path = '', anchor] = target.split('#')
  const to = path === '' ? from.path : posix.join(posix.dirname(from.path), path)
  if (!existsSync(root + to)) return false
  return (
    anchor === undefined || byPath.get(to)?.headings.some((heading) => heading.anchor === anchor) === true
  )
}

test('every link of every document leads to a file that is there, and to a heading that it has', () => {
  expect(documents.flatMap(deadLinksOf)).toEqual([])
  expect(documents.flatMap(({ lines }) => lines.flatMap(({ text }) => linksOf(text))).length).toBeGreaterThan(
    100,
  )
})
