import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../', import.meta.url))
const tsc = fileURLToPath(new URL('../../../../node_modules/typescript/bin/tsc', import.meta.url))

/** Builds the page if its sources are newer than what was built: a browser has no use for TypeScript. */
export function buildPage(): void {
  const built = `${folder}dist/page/main.js`
  if (existsSync(built) && latestIn(`${folder}src/page/`) < latestIn(`${folder}dist/page/`)) return
  execFileSync(process.execPath, [tsc, '-p', 'src/page/tsconfig.json'], { cwd: folder, stdio: 'inherit' })
  execFileSync(process.execPath, ['scripts/copy-page.mjs'], { cwd: folder, stdio: 'inherit' })
}

function latestIn(directory: string): number {
  return Math.max(...readdirSync(directory).map((name) => statSync(`${directory}${name}`).mtimeMs))
}
