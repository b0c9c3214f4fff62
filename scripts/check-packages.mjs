// Packs every published package and looks at it as an installer would: publint, then attw.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const expected = ['LICENSE', 'README.md', 'package.json']

function published() {
  return readdirSync(join(root, 'packages'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, 'packages', entry.name))
    .filter((folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).private !== true)
}

function pack(folder, destination) {
  const output = execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', destination], {
    cwd: folder,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  })
  const [packed] = Object.values(JSON.parse(output))
  return { ...packed, tarball: join(destination, packed.filename) }
}

function missingFrom(packed) {
  const paths = packed.files.map((file) => file.path)
  const missing = expected.filter((path) => !paths.includes(path))
  return paths.some((path) => path.startsWith('dist/')) ? missing : [...missing, 'dist/']
}

// A build does not delete what an earlier one wrote.
function staleIn(packed) {
  const paths = new Set(packed.files.map((file) => file.path))
  const sourceOf = (path) => path.replace(/^dist\//, 'src/').replace(/\.js$/, '.ts')
  return [...paths].filter((path) => /^dist\/.*\.js$/.test(path) && !paths.has(sourceOf(path)))
}

function passes(tool, ...args) {
  const script = join(root, 'node_modules', ...tool)
  const run = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  if (run.status !== 0) process.stdout.write(run.stdout + run.stderr)
  return run.status === 0
}

const destination = mkdtempSync(join(tmpdir(), 'timebudget-pack-'))
let failures = 0
try {
  for (const folder of published()) {
    const packed = pack(folder, destination)
    const missing = missingFrom(packed)
    if (missing.length > 0) console.log(`${packed.name} is packed without ${missing.join(', ')}`)
    const stale = staleIn(packed)
    if (stale.length > 0) console.log(`${packed.name} is packed with outdated ${stale.join(', ')}`)
    const good = [
      missing.length === 0,
      stale.length === 0,
      passes(['publint', 'src', 'cli.js'], packed.tarball, '--strict'),
      passes(
        ['@arethetypeswrong', 'cli', 'dist', 'index.js'],
        packed.tarball,
        '--profile',
        'esm-only',
        '--no-color',
        '--no-emoji',
      ),
    ].every(Boolean)
    console.log(
      `${good ? 'ok ' : 'bad'} ${packed.name}@${packed.version}: ${packed.entryCount} files, ${packed.size} bytes`,
    )
    if (!good) failures += 1
  }
} finally {
  rmSync(destination, { recursive: true, force: true })
}
process.exitCode = failures === 0 ? 0 : 1
