// Looks at what only a release needs; `npm run check` and `npm test` look at everything else.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishedPackages, root } from './published.mjs'

const packages = publishedPackages()
const [version, ...further] = new Set(packages.map(({ manifest }) => manifest.version))
const problems = []

if (further.length > 0)
  problems.push(`the packages have several versions: ${[version, ...further].join(', ')}`)
for (const { name, folder, manifest } of packages) {
  if (manifest.repository === undefined)
    problems.push(`packages/${name} does not say where its repository is: scripts/name-repository.mjs`)
  if (readFileSync(join(folder, 'README.md'), 'utf8').includes('](../'))
    problems.push(`packages/${name}/README.md has links that are dead on npm: scripts/name-repository.mjs`)
}
if (readdirSync(join(root, '.changeset')).some((file) => file.endsWith('.md')))
  problems.push('there are changesets that no version has taken up: npm run version')
if (!readFileSync(join(root, 'CHANGELOG.md'), 'utf8').includes(`## [${version}] - `))
  problems.push(`CHANGELOG.md has no ${version}: npm run version`)
if (execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }) !== '')
  problems.push('there are changes that are not committed')

for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
