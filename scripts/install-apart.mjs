// Installs what tests need and `npm ci` should not bring: each set in a folder of its own, because of the reason it gives.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const sets = JSON.parse(readFileSync(join(root, 'test/support/installed-apart.json'), 'utf8'))

for (const [name, { packages, omit }] of Object.entries(sets)) {
  const folder = join(root, 'node_modules/.cache', name)
  const missing = Object.entries(packages).some(([each, version]) => installedIn(folder, each) !== version)
  if (missing) install(folder, packages, omit)
}

function install(folder, packages, omit) {
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  if (omit.includes('scripts')) options.push('--ignore-scripts')
  if (omit.includes('optional')) options.push('--omit=optional')
  const specifiers = Object.entries(packages).map(([each, version]) => `${each}@${version}`)
  const run = spawnSync('npm', ['install', ...options, '--prefix', folder, ...specifiers], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (run.status !== 0) process.exit(1)
  console.log(`${specifiers.join(', ')}: ready`)
}

function installedIn(folder, name) {
  const manifest = join(folder, 'node_modules', name, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}
