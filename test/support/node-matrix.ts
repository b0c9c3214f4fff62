import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import versions from './node-versions.json' with { type: 'json' }

/** A Node to run against; `path` is undefined where it is not installed. */
export interface NodeBinary {
  readonly version: string
  readonly path: string | undefined
}

const installed = new URL('../../node_modules/.cache/timebudget-nodes/', import.meta.url)

/** The running Node, then the others that `scripts/install-node-matrix.mjs` installs. */
export function nodeMatrix(): NodeBinary[] {
  const [running = ''] = process.versions.node.split('.')
  const others = Object.entries(versions)
    .filter(([major]) => major !== running)
    .map(([major, version]) => ({ version, path: binaryOf(major) }))
  return [{ version: process.versions.node, path: process.execPath }, ...others]
}

function binaryOf(major: string): string | undefined {
  const windows = process.platform === 'win32'
  const name = `node-${windows ? 'win' : process.platform}-${process.arch}`
  const path = fileURLToPath(
    new URL(`${major}/node_modules/${name}/bin/node${windows ? '.exe' : ''}`, installed),
  )
  return existsSync(path) ? path : undefined
}
