import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'
import { heardAfterCollection } from './support/collected-request.ts'

const script = fileURLToPath(new URL('support/collected-request-process.ts', import.meta.url))
const [running, ...others] = nodeMatrix()

test(`a Request's signal is heard after its Request could have been collected, on Node ${running?.version}`, async () => {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('needs --expose-gc')
  expect(await heardAfterCollection(() => gc())).toBe(20)
})

// Node 20 reads no TypeScript; it is the tests' own, or none.
const newer = others.filter(({ version }) => Number(version.split('.')[0]) >= 22)

test.for(newer)(
  "a Request's signal is heard after its Request could have been collected, on Node $version",
  async ({ path }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const options = ['--conditions=@timebudget/source', '--expose-gc', '--no-warnings']
    const { stdout } = await promisify(execFile)(node, [...options, script])
    expect(stdout.trim()).toBe('20')
  },
)
