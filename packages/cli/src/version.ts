import { readFileSync } from 'node:fs'

/** The version of this package. */
export function version(): string {
  // the same distance from src and from dist
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return manifest.version
}
