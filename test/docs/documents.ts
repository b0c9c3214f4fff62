import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Markdown, readMarkdown } from './markdown.ts'

/** A document of the repository; `path` is relative to its root. */
export interface Document extends Markdown {
  readonly path: string
}

/** The repository's root, with a slash at its end. */
export const root: string = fileURLToPath(new URL('../../', import.meta.url))

/** What a user reads: the code in these is compiled. */
export const guides: readonly Document[] = [
  ...documentsIn('.').filter(({ path }) => path.startsWith('README')),
  ...documentsIn('docs'),
  ...foldersIn('packages').flatMap((folder) => documentsIn(folder)),
]

/** All that is written in Markdown. */
export const documents: readonly Document[] = [
  ...guides,
  ...documentsIn('.').filter(({ path }) => !path.startsWith('README')),
  ...documentsIn('bench'),
  ...documentsIn('examples'),
  ...foldersIn('examples').flatMap((folder) => documentsIn(folder)),
]

function foldersIn(parent: string): string[] {
  return readdirSync(root + parent, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${parent}/${name}`)
}

function documentsIn(folder: string): Document[] {
  if (!existsSync(root + folder)) return []
  return readdirSync(root + folder)
    .filter((name) => name.endsWith('.md'))
    .toSorted()
    .map((name) => {
      const path = folder === '.' ? name : `${folder}/${name}`
      return { path, ...readMarkdown(readFileSync(root + path, 'utf8')) }
    })
}
