// What CHANGELOG.md calls unreleased becomes the version that the packages have now, as of today.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishedPackages, root } from './published.mjs'

const [{ manifest }] = publishedPackages()
const path = join(root, 'CHANGELOG.md')
const text = readFileSync(path, 'utf8')
const heading = '## [Unreleased]\n'
const [today] = new Date().toISOString().split('T')
if (!text.includes(`## [${manifest.version}]`))
  writeFileSync(path, text.replace(heading, `${heading}\n## [${manifest.version}] - ${today}\n`))
