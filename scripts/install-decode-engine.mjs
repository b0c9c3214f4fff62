// Installs the engine that tests decode with: node-llama-cpp and its one binary for a plain CPU.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const packages = Object.entries(
  JSON.parse(readFileSync(join(root, 'test/support/decode-engine.json'), 'utf8')),
)

// Its own folder and not a devDependency: `npm ci` would fetch its binaries for every GPU, hundreds of megabytes.
const folder = join(root, 'node_modules/.cache/timebudget-llama')

if (packages.some(([name, version]) => installed(name) !== version)) {
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  // its install script would look for a compiler; the other binaries are its optional dependencies
  options.push('--ignore-scripts', '--omit=optional')
  const specifiers = packages.map(([name, version]) => `${name}@${version}`)
  const run = spawnSync('npm', ['install', ...options, '--prefix', folder, ...specifiers], {
    stdio: 'inherit',
  })
  if (run.status !== 0) process.exit(1)
  console.log(`${specifiers.join(' and ')} are ready`)
}

function installed(name) {
  const manifest = join(folder, 'node_modules', name, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}
