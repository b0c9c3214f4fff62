// The packages that are published, for the scripts of a release.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/** Name, folder and manifest of each. */
export function publishedPackages() {
  return readdirSync(join(root, 'packages'))
    .map((name) => ({ name, folder: join(root, 'packages', name) }))
    .map((each) => ({
      ...each,
      manifest: JSON.parse(readFileSync(join(each.folder, 'package.json'), 'utf8')),
    }))
    .filter(({ manifest }) => manifest.private !== true)
}
