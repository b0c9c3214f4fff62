// Installs the Node versions that tests run against besides the running one; npm ships them as packages.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const versions = JSON.parse(readFileSync(join(root, 'test/support/node-versions.json'), 'utf8'))
const platform = process.platform === 'win32' ? 'win' : process.platform
const name = `node-${platform}-${process.arch}`

for (const [major, version] of Object.entries(versions)) {
  // Its own folder and not a devDependency: `npm ci` has to work on every platform.
  const folder = join(root, 'node_modules/.cache/timebudget-nodes', major)
  if (installedIn(folder) === version) continue
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  const run = spawnSync('npm', ['install', ...options, '--prefix', folder, `${name}@${version}`], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (run.status !== 0) process.exit(1)
  console.log(`Node ${installedIn(folder)} is ready`)
}

function installedIn(folder) {
  const manifest = join(folder, 'node_modules', name, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}
