import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'
import type { Checked } from './providers/newer-process.ts'

const script = fileURLToPath(new URL('providers/newer-process.ts', import.meta.url))

// openai 7 and ai 7 need it
const node = nodeMatrix().find(({ version }) => Number(version.split('.')[0]) >= 22)

test(
  'providers and middleware do the same over openai 7 and the AI SDK 7 as over their elders',
  { timeout: 240_000 },
  async (context) => {
    const path = requireOrSkip(context, node?.path, 'node scripts/install-node-matrix.mjs')
    const options = ['--conditions=@timebudget/source', '--no-warnings']
    const { stdout } = await promisify(execFile)(path, [...options, script], { maxBuffer: 2 ** 26 })
    const checked = JSON.parse(stdout) as readonly Checked[]
    context.expect(checked.filter(({ problem }) => problem !== undefined)).toEqual([])
    context.expect(new Set(checked.map(({ surface }) => surface)).size).toBe(4)
  },
)
