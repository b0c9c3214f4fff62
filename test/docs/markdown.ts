/** A fenced block of code; `line` is that of its first line in the document, from 1. */
export interface CodeBlock {
  readonly language: string
  readonly code: string
  readonly line: number
  /** Anchor of the heading of level 2 above it; empty before the first. */
  readonly section: string
}

/** A heading of any level, as GitHub links to it. */
export interface Heading {
  readonly anchor: string
  readonly level: number
  readonly line: number
}

/** A line of text, or of a table, outside blocks of code. */
export interface TextLine {
  readonly text: string
  readonly line: number
  /** Anchor of the nearest heading above it. */
  readonly under: string
}

/** What the tests need to know of a document. */
export interface Markdown {
  readonly blocks: readonly CodeBlock[]
  readonly headings: readonly Heading[]
  readonly lines: readonly TextLine[]
}

/** Reads the Markdown that our documents are written in: fences of three backticks, headings by `#`. */
export function readMarkdown(source: string): Markdown {
  const blocks: CodeBlock[] = []
  const headings: Heading[] = []
  const lines: TextLine[] = []
  let open: { readonly language: string; readonly from: number } | undefined
  const all = source.split('\n')
  for (const [index, text] of all.entries()) {
    const fence = /^\s*```(\S*)/.exec(text)
    if (open !== undefined) {
      if (fence === null) continue
      const section = headings.findLast(({ level }) => level === 2)?.anchor ?? ''
      blocks.push({
        language: open.language,
        code: all.slice(open.from, index).join('\n'),
        line: open.from + 1,
        section,
      })
      open = undefined
    } else if (fence !== null) {
      open = { language: fence[1] ?? '', from: index + 1 }
    } else {
      const heading = /^(#{1,6}) (.+)$/.exec(text)
      if (heading !== null) headings.push(headingOf(heading, { headings, line: index + 1 }))
      lines.push({ text, line: index + 1, under: headings.at(-1)?.anchor ?? '' })
    }
  }
  return { blocks, headings, lines }
}

function headingOf(
  [, marks = '', title = '']: readonly string[],
  { headings, line }: { readonly headings: readonly Heading[]; readonly line: number },
): Heading {
  const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
  const slug = plain
    .trim()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
  const before = headings.filter(({ anchor }) => new RegExp(`^${slug}(-\\d+)?$`).test(anchor)).length
  return { anchor: before === 0 ? slug : `${slug}-${before}`, level: marks.length, line }
}

/** The cells of a table's row, or `undefined` for another line. */
export function cellsOf(text: string): string[] | undefined {
  if (!text.startsWith('|')) return undefined
  const cells = text.split(/(?<!\\)\|/).slice(1)
  if (cells.at(-1)?.trim() === '') cells.pop()
  return cells.map((cell) => cell.trim())
}

/** What stands between single backticks. */
export function inlineCodeOf(text: string): string[] {
  return Array.from(text.matchAll(/`([^`]+)`/g), ([, code = '']) => code)
}

/** Where the links and pictures of a line lead to. */
export function linksOf(text: string): string[] {
  const withoutCode = text.replaceAll(/`[^`]*`/g, '')
  return Array.from(withoutCode.matchAll(/\]\(([^()\s]+)\)/g), ([, target = '']) => target)
}
