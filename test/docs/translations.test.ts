import { expect, test } from 'vitest'
import { type Document, guides } from './documents.ts'
import { cellsOf, inlineCodeOf, linksOf } from './markdown.ts'

/** A page of docs/ in both languages. */
interface Pair {
  readonly path: string
  readonly english: Document
  readonly chinese: Document
}

/** A heading with what is below it, down to the next. */
interface Section {
  readonly place: string
  readonly level: number
  /** The lines outside blocks of code, the heading's first. */
  readonly lines: readonly string[]
  /** The blocks of code. */
  readonly blocks: readonly string[]
}

const pairs = guides.flatMap((chinese): Pair[] => {
  if (!/^docs\/.+\.zh-CN\.md$/.test(chinese.path)) return []
  const path = chinese.path.replace('.zh-CN', '')
  const english = guides.find((guide) => guide.path === path)
  return english === undefined ? [] : [{ path, english, chinese }]
})

function sectionsOf({ path, headings, lines, blocks }: Document): Section[] {
  return headings.map(({ line, level }, index) => {
    const end = headings[index + 1]?.line ?? Number.POSITIVE_INFINITY
    const isWithin = (part: { readonly line: number }): boolean => part.line >= line && part.line < end
    return {
      place: `${path}:${line}`,
      level,
      lines: lines.filter(isWithin).map(({ text }) => text),
      blocks: blocks.filter(isWithin).map(({ code }) => code),
    }
  })
}

/** The heading's level, and how many points are listed below it. */
function outlineOf({ level, lines }: Section): string {
  const points = lines.filter((text) => text.startsWith('- ')).length
  return `${'#'.repeat(level)} with ${points} points`
}

/** The lines of code without comments; the slashes of an address have no space before them. */
function codeOf({ blocks }: Section): string[] {
  return blocks.flatMap((code) => code.replaceAll(/(^|[ \t]+)\/\/ .*$/gm, '').split('\n'))
}

/** Of every row of the tables, their heads apart, the code in the first cell: empty where that is prose. */
function rowsOf({ lines }: Section): string[] {
  const isRule = (text = ''): boolean => /^\|[ :|-]+$/.test(text)
  return lines.flatMap((text, index) => {
    const first = cellsOf(text)?.[0]
    return first === undefined || isRule(text) || isRule(lines[index + 1])
      ? []
      : [inlineCodeOf(first).join(', ')]
  })
}

/** What no language changes: the names and values between backticks, which may be broken over two lines. */
function namesIn({ lines }: Section): string[] {
  return Array.from(new Set(inlineCodeOf(lines.join(' ')))).toSorted()
}

/** The pages linked to, in whatever language. At its top a page also leads to its other language, and to what else is translated. */
function pagesLinkedFrom({ level, lines }: Section): string[] {
  if (level === 1) return []
  const pages = lines.flatMap(linksOf).map((target) => target.replace(/#.*/, '').replace('.zh-CN', ''))
  return Array.from(new Set(pages)).toSorted()
}

/** The sections that differ in what is listed of them, in words; those that only one language has are left out. */
function differencesOf(
  { english, chinese }: Pair,
  listed: (section: Section) => readonly string[],
): readonly string[] {
  const translated = sectionsOf(chinese)
  return sectionsOf(english).flatMap((section, index) => {
    const other = translated[index]
    if (other === undefined) return []
    const [ours, theirs] = [listed(section), listed(other)]
    if (ours.join('\n') === theirs.join('\n')) return []
    const lacking = ours.filter((each) => !theirs.includes(each)).join(', ')
    const added = theirs.filter((each) => !ours.includes(each)).join(', ')
    return [`${section.place} and ${other.place}: only in the first [${lacking}], in the second [${added}]`]
  })
}

test('the guide and the page for trouble are there in Chinese', () => {
  expect(pairs.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['docs/guide.md', 'docs/troubleshooting.md']),
  )
})

test.for(pairs)('$path leads to its Chinese page, and that one back', ({ english, chinese }) => {
  const linkedAtTop = ({ lines }: Document): string[] =>
    lines.slice(0, 4).flatMap(({ text }) => linksOf(text))
  const nameOf = ({ path }: Document): string => path.replace('docs/', '')
  expect(linkedAtTop(english)).toContain(nameOf(chinese))
  expect(linkedAtTop(chinese)).toContain(nameOf(english))
})

test.for(pairs)('$path has the same headings in Chinese, with as many points', ({ english, chinese }) => {
  expect(sectionsOf(chinese).map(outlineOf)).toEqual(sectionsOf(english).map(outlineOf))
})

test.for(pairs)('$path has the same code in Chinese, comments apart', (pair) => {
  expect(differencesOf(pair, codeOf)).toEqual([])
})

test.for(pairs)('$path has the same rows in its tables in Chinese', (pair) => {
  expect(differencesOf(pair, rowsOf)).toEqual([])
})

test.for(pairs)('$path names the same things in Chinese', (pair) => {
  expect(differencesOf(pair, namesIn)).toEqual([])
})

test.for(pairs)('$path leads to the same pages in Chinese', (pair) => {
  expect(differencesOf(pair, pagesLinkedFrom)).toEqual([])
})
