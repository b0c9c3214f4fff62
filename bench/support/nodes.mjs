import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const installed = new URL('../../node_modules/.cache/timebudget-nodes/', import.meta.url)
const versions = JSON.parse(readFileSync(new URL('../../test/support/node-versions.json', import.meta.url)))

/** The running Node and those that `scripts/install-node-matrix.mjs` has installed; only the `wanted` majors, if any are. */
export function nodes(wanted) {
  const running = { major: process.versions.node.split('.')[0], path: process.execPath }
  const others = Object.keys(versions)
    .filter((major) => major !== running.major)
    .map((major) => ({ major, path: pathOf(major) }))
  const all = [running, ...others].filter(({ path }) => existsSync(path))
  const missing = wanted?.filter((major) => !all.some((node) => node.major === major)) ?? []
  if (missing.length > 0) throw new Error(`not installed: Node ${missing.join(', ')}`)
  return all
    .filter(({ major }) => wanted === undefined || wanted.includes(major))
    .toSorted((one, other) => one.major - other.major)
}

function pathOf(major) {
  return fileURLToPath(
    new URL(`${major}/node_modules/node-${process.platform}-${process.arch}/bin/node`, installed),
  )
}
