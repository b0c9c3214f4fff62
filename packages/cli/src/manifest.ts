import { readFileSync } from 'node:fs'

/** What this package says of itself, as far as it is told on. */
export interface Manifest {
  readonly version: string
  /** `git+https://github.com/OWNER/NAME.git`, once it has an owner. */
  readonly repository?: { readonly url: string }
}

/** The version of this package. */
export function version(): string {
  return readManifest().version
}

/** Where a page of the repository is: its address, or its path where no address is known. */
export function whereIs(page: string, { repository }: Pick<Manifest, 'repository'> = readManifest()): string {
  if (repository === undefined) return `${page}, in timebudget's repository`
  return `${repository.url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/main/${page}`
}

function readManifest(): Manifest {
  // the same distance from src and from dist
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
}
