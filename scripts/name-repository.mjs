// Says once where the repository is: `node scripts/name-repository.mjs https://github.com/OWNER/NAME`. npm wants to know it for
// the provenance of what it publishes, and the packages' READMEs cannot link to files of it before.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishedPackages } from './published.mjs'

const [url = ''] = process.argv.slice(2)
if (!/^https:\/\/[\w.-]+\/[\w.-]+\/[\w.-]+(?<!\.git)$/.test(url)) {
  console.error('usage: node scripts/name-repository.mjs https://github.com/OWNER/NAME')
  process.exit(2)
}

for (const { name, folder, manifest } of publishedPackages()) {
  const { license, ...others } = manifest
  const named = Object.entries(others).flatMap(([key, value]) => {
    if (['homepage', 'bugs', 'repository'].includes(key)) return []
    return key === 'keywords' ? [[key, value], ...whereabouts(name, license)] : [[key, value]]
  })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(Object.fromEntries(named), null, 2)}\n`)
  const readme = join(folder, 'README.md')
  const absolute = readFileSync(readme, 'utf8').replaceAll('](../../', `](${url}/blob/main/`)
  writeFileSync(readme, absolute)
}

function whereabouts(name, license) {
  return [
    ['homepage', `${url}/tree/main/packages/${name}#readme`],
    ['bugs', `${url}/issues`],
    ['repository', { type: 'git', url: `git+${url}.git`, directory: `packages/${name}` }],
    ['license', license],
  ]
}
