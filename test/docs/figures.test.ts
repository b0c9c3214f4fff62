import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Document, documents, guides, root } from './documents.ts'
import { inlineCodeOf } from './markdown.ts'

const manifest: unknown = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
const { scripts } = manifest as { readonly scripts: Readonly<Record<string, string>> }

/** What says that a number was measured. */
const measured =
  /(?<!\p{L})(measured|simulated|\d us|\d ns|µs|decode seconds|slots wasted|解码秒数)(?!\p{L})|times (as many|the answers) /iu

/** A command that prints the number, or a file of the repository that measures it or asserts it. */
const command =
  /^(npm run (bench|demo)|(npx @timebudget\/cli|timebudget) simulate)|^(bench|test|packages|examples)\/\S+\.(mjs|ts)$/

function figuresWithoutCommand({ path, lines, headings, blocks }: Document): string[] {
  const sections = headings.filter(({ level }) => level <= 2)
  return lines
    .filter(({ text }) => measured.test(text))
    .flatMap(({ text, line }) => {
      const from = sections.findLast((heading) => heading.line <= line)?.line ?? 0
      const to = sections.find((heading) => heading.line > line)?.line ?? Number.POSITIVE_INFINITY
      const within = (at: number): boolean => at >= from && at < to
      const said = [
        ...lines.filter((other) => within(other.line)).flatMap((other) => inlineCodeOf(other.text)),
        ...blocks.filter((block) => within(block.line)).flatMap(({ code }) => code.split('\n')),
      ]
      return said.some((code) => command.test(code)) ? [] : [`${path}:${line} ${text}`]
    })
}

test('every section that tells measured figures tells by what they are measured', () => {
  expect(guides.flatMap(figuresWithoutCommand)).toEqual([])
})

test('every script and file that a document names as a command is there', () => {
  const missing = documents.flatMap(({ path, lines, blocks }) => {
    const texts = [...lines.flatMap(({ text }) => inlineCodeOf(text)), ...blocks.map(({ code }) => code)]
    const named = texts.flatMap((text) => [
      ...Array.from(text.matchAll(/npm run ([\w:-]+)/g), ([, name = '']) => ({
        name,
        is: scripts[name] !== undefined,
      })),
      ...Array.from(
        text.matchAll(/^(?:bench|test|packages|examples|scripts)\/\S+\.(?:mjs|ts|json)$/g),
        ([name]) => ({
          name,
          is: existsSync(root + name),
        }),
      ),
    ])
    return named.filter(({ is }) => !is).map(({ name }) => `${path} ${name}`)
  })
  expect(missing).toEqual([])
})

test('the tables of figures in the READMEs are those that the benches have saved', () => {
  execFileSync(process.execPath, [`${root}scripts/embed-figures.mjs`, '--check'], { stdio: 'pipe' })
})
