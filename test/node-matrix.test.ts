import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { nodeMatrix } from './support/node-matrix.ts'
import { requireOrSkip } from './support/requirements.ts'

test('the matrix starts with the running Node and names each major once', () => {
  const majors = nodeMatrix().map(({ version }) => version.split('.')[0])
  expect(majors[0]).toBe(process.versions.node.split('.')[0])
  expect(majors).toEqual(expect.arrayContaining(['22', '24', '26']))
  expect(new Set(majors).size).toBe(majors.length)
})

test.for(nodeMatrix())('Node $version of the matrix is what it says', ({ version, path }, context) => {
  const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
  expect(execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()).toBe(`v${version}`)
})
